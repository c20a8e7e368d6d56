#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A stopped rank, or one that blocks, is unresponsive and ends the job after --rank-timeout, wherever
# the others wait for it, and the waiting rank reports why. For a slow rank, in one long step say, the
# others wait, and name it.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

expect 0 "$IOBENCH" pack synthetic:count=64,classes=3,mean=6k,seed=5 set

stop_rank_1() {
    victim=$(last_rank $job)
    kill -STOP "$victim"
    wait $job && die "a job with a silent rank succeeded" # or the job never ends
    grep -q "waited [0-9]* s.*: another rank is unresponsive.*rank 1 on $(uname -n)" log ||
        die "nobody says that rank 1 is unresponsive: $(cat log)"
}

# The rank stops in the middle of steps (the whole set in batches of 1) or near the end of an epoch
# (two steps each).
for batch in 1 16; do
    rm -rf kept log
    mpi 2 "$IOBENCH" train --network lenet --size 32 --classes 3 --data set --batch-size $batch \
        --decode-threads 1 --compute-threads 1 --lr 0.001 --memory 16m --epochs 100000 \
        --checkpoint kept --rank-timeout 2s >log 2>&1 &
    job=$!
    while [ ! -e kept/last.checkpoint ] && kill -0 $job 2>/dev/null; do sleep 0.05; done
    stop_rank_1
done

# A rank that still reads while the other is done: waited for beyond --rank-timeout, until it is
# unresponsive.
# shellcheck disable=SC2016 # the shell of each rank expands it
slow='[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK-}}" != 1 ] || set -- "$@" --limit-rate 10B; exec "$@"'
mpi 2 sh -c "$slow" sh "$IOBENCH" run --data set --memory 16m -t 1 --calibrate=no \
    --decode checksum --batch-size 1 --runs 1 --rank-timeout 4s >log 2>&1 &
job=$!
while ! grep -q "iobench: waiting for rank 1 on $(uname -n), [0-9]* s so far" log && kill -0 $job 2>/dev/null; do
    sleep 0.05
done
stop_rank_1
grep -q "iobench: waiting for rank 1 on $(uname -n), [0-9]* s so far" log || die "nobody was waited for: $(cat log)"

# One that computes without asking for the others is as alive as one that asks, one that blocks is not.
alive=$(dirname "$IOBENCH")/tests/cluster/alive
expect 0 mpi 2 "$alive" computes
says "waiting for rank 1 on $(uname -n)" "rank 0: all came" "rank 1: all came"
mpi 2 timeout -k 5 300 "$alive" blocks >log 2>&1 && die "a rank that blocks was waited for: $(cat log)"
grep -q "rank 0: .*another rank is unresponsive: rank 1 on $(uname -n)" log || die "nobody names rank 1: $(cat log)"

# Gradients of a rank whose batch takes long to read are waited for, too.
# shellcheck disable=SC2016 # the shell of each rank expands it
expect 0 mpi 2 sh -c '[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK-}}" != 1 ] || set -- "$@" --limit-rate 800B; exec "$@"' sh \
    "$IOBENCH" train --network lenet --size 32 --classes 3 --data set --batch-size 1 --limit-samples 4 --bs 1k \
    --decode-threads 1 --compute-threads 1 --lr 0.001 --memory 16m --epochs 1 --rank-timeout 4s
says "iobench: waiting for other ranks, "
echo "a silent rank ended its job, a slow one did not"
