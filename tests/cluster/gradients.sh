#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two nodes train together from cold caches, under mpirun: gradients and the data set share one
# Ethernet.
#
#   sudo ./bootstrap experiment [FOLDER]                                  all experiments
#   cd build && sudo srcdir=.. ../tests/cluster/gradients.sh FOLDER
OUT=$(mkdir -p "${1:?the folder for results}" && cd "$1" && pwd) || exit
# shellcheck source=tests/cluster/bed/uml.sh
. "$(dirname "$0")/bed/uml.sh"
# shellcheck source=tests/cluster/bed/sets.sh
. "$BED/sets.sh"

make_sets 1600 recordio:1 # 100 KB each
boot_server
uml_guest node1 640M
uml_guest node2 640M
await node1 node2
for node in node1 node2; do
    must $node ". $BED/guest.sh; mount_nfs $(address_of server) /mnt/nfs
        $IOBENCH run --data /mnt/nfs/recordio --memory 20m --dry-run"
done
forget server node1 node2

# An independent monitor watches each rank; only the epoch marks come from rank 0.
mpirun_in "node1 node2" 1 "$IOBENCH monitor --probes=nfs,net --interval=200ms --sample-interval=100ms \
    --json=/run/lines /mnt/nfs -- \
    $IOBENCH train --network lenet --size 28 --classes 10 --data /mnt/nfs/recordio --batch-size 25 \
    --epochs 6 --lr 0.0001 --decode-threads 1 --compute-threads 1 --memory 20m --json /run/run.json"
cat "$T/must"
on node1 "cat /run/run.json" >run.json || die "no result"
for node in node1 node2; do on $node "cat /run/lines" >$node.lines; done
python3 "$BED/wire_over_time.py" run.json "$OUT/gradients" node1=node1.lines node2=node2.lines \
    >"$OUT/gradients-epochs.csv" || die "no table"
cat "$OUT/gradients-epochs.csv"
