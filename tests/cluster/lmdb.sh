#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Mapped LMDB on a disk of known speed, in a QEMU guest, from cold caches: with a page cache large
# enough for the set, and with a limit that is not.
#
#   sudo ./bootstrap experiment [FOLDER]                                  all experiments
#   cd build && sudo srcdir=.. ../tests/cluster/lmdb.sh FOLDER
OUT=$(mkdir -p "${1:?the folder for results}" && cd "$1" && pwd) || exit
# shellcheck source=tests/cluster/bed/qemu.sh
. "$(dirname "$0")/bed/qemu.sh"
# shellcheck source=tests/cluster/bed/sets.sh
. "$BED/sets.sh"

SAMPLES=1000 # of 100 KB
DISK=$((20 * 1000 * 1000)) # bytes per second
RATE=400 # samples/s that a GPU would consume: more than the disk delivers
make_sets $SAMPLES recordio:1 lmdb:1
qemu_guest node1 768M -drive "file=$T/disk.img,format=raw,if=virtio,cache=none,throttling.bps-read=$DISK"
await node1
must node1 "modprobe -d $LINUX ext4; mount /dev/vda /mnt/disk
    $IOBENCH run --data /mnt/disk/lmdb --memory 20m --dry-run"
begin_case lmdb
for cache in large small; do
    [ $cache = large ] && limit='' || limit="--memory-limit 96m"
    must node1 "$IOBENCH run --as caffe2 --data /mnt/disk/lmdb --memory 20m --decode none -t 1 \
        --no-calibrate --runs 1 --epochs 3 --sample-interval 200ms --trainer replay:rate=$RATE \
        --batch-size 5 --drop-caches=strict $limit --json /run/run.json"
    on node1 "cat /run/run.json" >run.json
    end_case "lmdb-$cache" run.json
done
