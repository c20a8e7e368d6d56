#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank that lives but is silent (stopped) ends the job after --silence, and the rank that waited
# says why; wherever the others wait for it.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

expect 0 "$IOBENCH" pack synthetic:count=64,classes=3,mean=6k,seed=5 set

# Two epochs of which one lasts: the stop comes in the middle of steps (the whole set in batches of
# 1) or near the end of an epoch (two steps each).
for batch in 1 16; do
    rm -rf kept log
    mpi 2 "$IOBENCH" train --network lenet --size 32 --classes 3 --data set --batch-size $batch \
        --threads 1 --compute-threads 1 --lr 0.001 --memory 16m --epochs 100000 \
        --checkpoint kept --silence 2s >log 2>&1 &
    job=$!
    while [ ! -e kept/last.checkpoint ] && kill -0 $job 2>/dev/null; do sleep 0.05; done
    launcher=$(ps -eo pid=,ppid=,comm= | awk -v job=$job '$2 == job && $3 == "mpirun" { print $1 }')
    victim=$(ps -eo pid=,ppid=,comm= | awk -v launcher="${launcher:-$job}" \
        '$2 == launcher && $3 == "iobench" { pid = $1 } END { print pid }')
    [ -n "$victim" ] || die "no rank was found below mpirun: $(cat log)"
    start=$(date +%s)
    kill -STOP "$victim"
    wait $job && die "a job with a silent rank succeeded"
    took=$(($(date +%s) - start))
    [ $took -le 20 ] || die "the job took $took s to end"
    grep -q "waited 2 s.*: another rank is silent.*rank 1 on $(uname -n)" log ||
        die "nobody says that rank 1 is silent: $(cat log)"
done
echo "a silent rank ended its job"
