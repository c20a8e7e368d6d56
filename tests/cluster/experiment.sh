#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Storage during training, as published for GPU clusters, on guests: a kernel NFS server, one, two
# and four nodes of two ranks each as one job under mpirun, from cold; nodes whose page cache holds
# the set, and nodes whose page cache does not.
#
#   sudo ./bootstrap experiment [FOLDER]                                  all experiments
#   cd build && sudo srcdir=.. ../tests/cluster/experiment.sh FOLDER [large-1 large-2 large-4
# small-1 small-2]
#
# The tables in FOLDER are the nodes' time series from the job's own result.
OUT=$(mkdir -p "${1:?the folder for results}" && cd "$1" && pwd) || exit
# shellcheck source=tests/cluster/bed/uml.sh
. "$(dirname "$0")/bed/uml.sh"
# shellcheck source=tests/cluster/bed/sets.sh
. "$BED/sets.sh"
shift
[ $# -gt 0 ] || set -- large-1 large-2 large-4 small-1 small-2

SAMPLES=1600 # of 100 KB: 160 MB
EPOCHS=3
RATE=100 # samples/s that a rank's GPU would consume
RANKS=2  # of a node
# A framework's behaviour scaled to our sizes: fewer files in flight, a smaller shuffle buffer.
MXNET="--as mxnet --data /mnt/nfs/recordio"
TENSORFLOW="--as horovod-tensorflow --data /mnt/nfs/shards --shuffle tfdata:60,interleave=4"
CAFFE2="--as caffe2 --data /mnt/nfs/lmdb"

boot() { # MEMORY COUNT: nodes with an index
    nodes=$(seq -s ' ' -f 'node%g' "$2")
    for node in $nodes; do uml_guest "$node" "$1"; done
    # shellcheck disable=SC2086 # a list
    await $nodes
    for node in $nodes; do
        must "$node" ". $BED/guest.sh; mount_nfs $(address_of server) /mnt/nfs"
        for format in recordio shards lmdb; do
            must "$node" "$IOBENCH run --data /mnt/nfs/$format --memory 20m --dry-run"
        done
    done
}

halt() {
    for node in $nodes; do # it replies before it powers off
        must "$node" "umount /mnt/nfs; (sleep 0.2; echo o >/proc/sysrq-trigger) >/dev/null 2>&1 &"
    done
    sleep 1
    for node in $nodes; do ip link del "guest$((10 + ${node#node}))"; done
}

# run_case NAME OPTION...: all ranks of all nodes as one job, from cold; an epoch of a rank is its
# share of the set, even if other ranks read the same samples.
run_case() {
    name=$1
    shift
    mpirun_in "$nodes" $RANKS "$IOBENCH run --memory 20m --decode none -t 1 --no-calibrate \
        --runs 1 --epochs $EPOCHS --limit-samples $SAMPLES --sample-interval 200ms \
        --trainer replay:rate=$RATE --batch-size 5 --drop-caches=strict \
        --server-drop-cmd \"$(forget_command server)\" \
        --server-check-cmd \"$(check_command server /mnt/disk)\" $* --json /run/run.json"
    on node1 "cat /run/run.json" >run.json || die "$name: no result"
    end_case "$name" run.json
}

make_sets "$SAMPLES" recordio:1 shards:64 lmdb:1
boot_server
for case; do
    begin_case "$case"
    memory=640M # holds the set
    [ "${case%-*}" = large ] || memory=224M
    boot $memory "${case#*-}"
    run_case "$case-mxnet" "$MXNET"
    run_case "$case-tensorflow" "$TENSORFLOW"
    run_case "$case-caffe2" "$CAFFE2"
    halt
done
