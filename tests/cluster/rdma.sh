#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Storage and gradients over RDMA, in QEMU guests with soft-RoCE: NFS over RDMA read by one node,
# then two nodes training together from cold caches, with MPI on the same port.
#
#   sudo ./bootstrap experiment [FOLDER]                                  all experiments
#   cd build && sudo srcdir=.. ../tests/cluster/rdma.sh FOLDER
OUT=$(mkdir -p "${1:?the folder for results}" && cd "$1" && pwd) || exit
# shellcheck source=tests/cluster/bed/qemu.sh
. "$(dirname "$0")/bed/qemu.sh"
# shellcheck source=tests/cluster/bed/sets.sh
. "$BED/sets.sh"

make_sets 400 recordio:1 # of 100 KB
qemu_guest server 1024M -drive "file=$T/disk.img,format=raw,if=virtio"
qemu_guest node1 1024M
qemu_guest node2 1024M
await server node1 node2
for guest in server node1 node2; do must $guest ". $BED/guest.sh; make_rxe"; done
must server "modprobe -d $LINUX ext4; mount /dev/vda /mnt/disk"
export_folder server /mnt/disk
for node in node1 node2; do
    must $node "modprobe -d $LINUX rpcrdma; . $BED/guest.sh
        mount_nfs $(address_of server) /mnt/nfs proto=rdma,port=20049
        $IOBENCH run --data /mnt/nfs/recordio --memory 20m --dry-run"
done

# Lines of the table with the provenance of the bytes.
tell_bytes() { grep -E "^  (Sources|Nodes|Series) |^   +(received - sent|node[0-9]|fabric) " "$1"; }

echo "== one node reads"
must node1 "$IOBENCH run --data /mnt/nfs/recordio --decode none --no-calibrate --runs 1 --epochs 2 \
    --memory 20m --drop-caches --json /run/run.json"
tell_bytes "$T/must"
on node1 "cat /run/run.json" >read.json
on node1 "grep -A 12 'mounted on /mnt/nfs ' /proc/self/mountstats" | grep "xprt:.*rdma" || die "not mounted by RDMA"
python3 "$BED/by_epoch.py" read.json >"$OUT/rdma-read.csv" || die "no table"
cat "$OUT/rdma-read.csv"
set_bytes=$(on server "cat /mnt/disk/recordio/* | wc -c")
sum() { # FILE NODE COLUMN: over its epochs, in bytes
    awk -F, -v node="$2" -v name="$3" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == node { sum += $at[name] } END { printf "%.0f", sum * 1000000 }' "$1"
}
near "one node, bytes over the fabric" "$(sum "$OUT/rdma-read.csv" node1 from_fabric_MB)" "$set_bytes" 1
near "one node, received - sent" "$(sum "$OUT/rdma-read.csv" node1 fabric_excess_MB)" "$set_bytes" 2

# Short queues, and time-outs for emulated CPUs that may stall for seconds.
echo "== two nodes learn"
forget server node1 node2
UCX="--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any \
    -x UCX_TLS=rc_verbs,ud_verbs,self -x UCX_NET_DEVICES=rxe0:1 -x UCX_IB_GID_INDEX=0 \
    -x UCX_RC_VERBS_RX_QUEUE_LEN=128 -x UCX_UD_VERBS_RX_QUEUE_LEN=256 \
    -x UCX_RC_VERBS_TIMEOUT=8s -x UCX_RC_VERBS_RNR_TIMEOUT=10ms -x UCX_UD_VERBS_TIMEOUT=10m"
mpirun_in "node1 node2" 1 "$IOBENCH train --network lenet --size 28 --classes 10 \
    --data /mnt/nfs/recordio --batch-size 50 --epochs 3 --lr 0.0001 --decode-threads 1 --compute-threads 1 \
    --memory 20m --rank-timeout 5m --json /run/run.json" "$UCX"
tell_bytes "$T/must"
on node1 "cat /run/run.json" >train.json
"$IOBENCH" plot --title "Two nodes learn; data and gradients over RDMA" -o "$OUT/rdma.svg" train.json || die "no picture"
python3 "$BED/by_epoch.py" train.json >"$OUT/rdma-epochs.csv" || die "no table"
cat "$OUT/rdma-epochs.csv"
for node in node1 node2; do
    near "$node, received - sent" "$(sum "$OUT/rdma-epochs.csv" $node fabric_excess_MB)" \
        "$(sum "$OUT/rdma-epochs.csv" $node from_fabric_MB)" 2
    near "$node, gradients sent" "$(sum "$OUT/rdma-epochs.csv" $node fabric_send_MB)" \
        "$(sum "$OUT/rdma-epochs.csv" $node expected_gradient_MB)" 5
done
