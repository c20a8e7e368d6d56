#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Storage under training, as published for clusters of GPUs, on guests: a kernel NFS server, one and
# two nodes of two ranks each, from cold; nodes whose page cache holds the set, and nodes whose does not.
#
#   sudo ./bootstrap experiment [FOLDER]                                  all experiments
#   cd build && sudo srcdir=.. ../tests/cluster/experiment.sh FOLDER [large-1 large-2 small-1 small-2]
#
# Each table in FOLDER is what the nodes' own results say over time.
OUT=$(mkdir -p "${1:?the folder for results}" && cd "$1" && pwd) || exit
# shellcheck source=tests/cluster/bed/uml.sh
. "$(dirname "$0")/bed/uml.sh"
# shellcheck source=tests/cluster/bed/sets.sh
. "$BED/sets.sh"
shift
[ $# -gt 0 ] || set -- large-1 large-2 small-1 small-2

SAMPLES=1600 # of 100 KB: 160 MB
EPOCHS=3
RATE=150 # samples a second that a rank's GPU would take
RANKS=2  # of a node
# What a framework does at its real sizes, at ours: fewer files in flight, a smaller shuffle buffer.
MXNET="--as mxnet --data /mnt/nfs/recordio"
TENSORFLOW="--as horovod-tensorflow --data /mnt/nfs/shards --shuffle tfdata:60,interleave=4 --overlap-epochs"
CAFFE2="--as caffe2 --data /mnt/nfs/lmdb"

boot() { # MEMORY COUNT: nodes that know where the samples lie
    nodes=
    for number in $(seq "$2"); do
        uml_guest "node$number" "$1"
        nodes="$nodes node$number"
    done
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
    for node in $nodes; do # its answer comes before it is off
        must "$node" "umount /mnt/nfs; (sleep 0.2; echo o >/proc/sysrq-trigger) >/dev/null 2>&1 &"
    done
    sleep 1
    for node in $nodes; do ip link del "guest$((10 + ${node#node}))"; done
}

# run_case NAME OPTION...: all ranks of all nodes at once, from cold; an epoch of a rank is its
# share of the set, whoever else reads the same. The guests' clocks are this machine's.
run_case() {
    name=$1
    shift
    # shellcheck disable=SC2086 # a list
    forget server $nodes
    ranks=$(($(echo "$nodes" | wc -w) * RANKS)) rank=0 jobs='' results=''
    start=$(($(date +%s) + 3))
    for node in $nodes; do
        commands="until [ \$(date +%s) -ge $start ]; do sleep 0.01; done;"
        for local in $(seq $RANKS); do
            commands="$commands $IOBENCH run --memory 20m --decode none --threads 1 --no-calibrate \
                --runs 1 --epochs $EPOCHS --limit-samples $((SAMPLES / ranks)) --sample-interval 200ms \
                --trainer replay:rate=$RATE --batch-size 5 --ranks $ranks --rank $rank $* \
                --json /run/$name.$local & jobs=\"\$jobs \$!\";"
            results="$results $node=$T/$node.$local.json"
            rank=$((rank + 1))
        done
        on "$node" "$commands for job in \$jobs; do wait \$job || exit; done" >"$T/$node.log" 2>&1 &
        jobs="$jobs $!"
    done
    for job in $jobs; do wait "$job" || { cat "$T"/node*.log; die "$name"; }; done
    for node in $nodes; do
        for local in $(seq $RANKS); do
            on "$node" "cat /run/$name.$local" >"$T/$node.$local.json" || die "$name: $node has no result"
        done
    done
    # shellcheck disable=SC2086 # a list
    end_case "$name" $results
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
