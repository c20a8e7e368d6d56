#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A data set on a loop device: its backing file must be cold, too.
CACHECTL=$PWD/cachectl/cachectl
# shellcheck disable=SC2034 # for cli.sh
ON_DISK=yes MOUNTS=yes
. "$(dirname "$0")/cli.sh"

command -v mkfs.ext4 >/dev/null || skip "mkfs.ext4 is not installed"
mkdir memory mnt
mount -t tmpfs -o size=64m tmpfs memory 2>/dev/null || skip "nothing can be mounted here"
truncate -s 48M memory/image
mkfs.ext4 -q memory/image
mount -o loop memory/image mnt 2>/dev/null || skip "there is no loop device here"

expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k mnt/set -f shards --shards 2
sync
expect 1 "$IOBENCH" run --data mnt/set --drop-caches=strict --decode none --runs 1 --no-calibrate
says "not verified cold: loop device on" "memory/image" "can never be cold"
expect 1 "$IOBENCH" run --data mnt/set --drop-caches --decode none --runs 1 --no-calibrate
says "INVALID" "loop device on"
# Nor do direct reads bypass that cache: neither is a profile of it one of a storage.
expect 0 "$IOBENCH" run --data mnt/set --direct --decode none --runs 1 --no-calibrate
says "Cache warm" "in memory: nothing leaves storage"
expect 1 "$IOBENCH" size --measure mnt/set --read-sizes 64k --depths 4 --measure-time 10ms --save own.ini
says "DEGRADED: only 0.0% of the bytes left storage" "in memory"
grep -q "^doubt=DEGRADED" own.ini || die "no doubt in $(cat own.ini)"
expect 1 "$IOBENCH" size --measure memory --read-sizes 64k --depths 4 --measure-time 10ms
says "DEGRADED: only 0.0% of the bytes left storage"
# cachectl looks there as well, for a set and for each file.
for options in "drop" "evict" "drop -f"; do
    # shellcheck disable=SC2086 # words
    expect 1 "$CACHECTL" $options mnt/set
    says "warm" "can never be cold"
done
"$CACHECTL" status --json mnt/set | grep -q '"resident_percent": 100' || die "not resident: $("$CACHECTL" status --json mnt/set)"

# A file that is a link into it, after one that is not.
mkdir linked
cp mnt/set/train-00000-of-00002 linked
ln -s "$T/mnt/set/train-00001-of-00002" linked
expect 1 "$IOBENCH" run --data linked --drop-caches --decode none --runs 1 --no-calibrate --sandbox no
says "INVALID" "loop device on"

# Part of the file is in memory: neither cold nor all of it.
cp memory/image image
mkdir half
mount -o loop image half
sync
"$CACHECTL" drop half/set >/dev/null 2>&1 # or other tests keep it warm
look_at_half() {
    head -c 24M image >/dev/null
    # shellcheck disable=SC2034 # says reads it
    out=$("$CACHECTL" status half/set 2>&1) || :
}
undropped look_at_half
says "warm" "loop device on"
# In a folder in memory, a link to a disk: that is in the series.
mkdir memory/linked
cp mnt/set/train-00000-of-00002 memory/linked
cp mnt/set/train-00001-of-00002 shard
ln -s "$T/shard" memory/linked/train-00001-of-00002
"$IOBENCH" run --data memory/linked --direct --decode none --runs 1 --no-calibrate --sandbox no --json linked.json >out 2>&1
grep -q '"storage_read_bytes' linked.json || die "no disk in the series: $(cat out)"
