#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What users expect of `mpirun iobench run`: one table for all ranks, caches dropped once, the slow
# rank named, and unconnected processes refused.
# shellcheck disable=SC2154 # expect sets out
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

expect 0 "$IOBENCH" pack synthetic:count=151,classes=3,mean=6k,seed=5 set --shards 3
RUN="run --data set --memory 16m -t 1 --calibrate=no --decode checksum --batch-size 8"
# shellcheck disable=SC2086 # words without blanks
{
    expect 0 "$IOBENCH" $RUN --runs 1 --digest
    alone=$(printf '%s\n' "$out" | sed -n 's/^ *Digest *\([0-9a-f]*\).*/\1/p')
    expect 0 mpi 3 "$IOBENCH" $RUN --runs 2 --digest --drop-caches --json all.json \
        --server-drop-cmd "echo dropped >>$T/server"
    says "3 on 1 node" "slower than the median rank" "151 samples"
    [ "$(printf '%s\n' "$out" | grep -c ': valid, ')" = 1 ] || die "not one rank spoke"
    case $out in *"$(printf '\033')"*) die "colours though no terminal is known of" ;; esac
    together=$(printf '%s\n' "$out" | sed -n 's/^ *Digest *\([0-9a-f]*\).*/\1/p')
    [ -n "$alone" ] || die "one rank prints no digest"
    [ "$alone" = "$together" ] || die "three ranks read other samples than one"
    [ "$(wc -l <server)" = 2 ] || die "the server was asked $(wc -l <server) times in two runs"
    grep -q '"exit_status": 0' all.json || die "all.json does not say how the server's drop ended"
    [ "$(grep -c '"start_barrier_s"' all.json)" = $((2 * (3 + 1))) ] ||
        die "all.json has not three ranks and one epoch in each of two runs"

    # Strict: data in memory is never cold, and the job names the node.
    if [ -d /dev/shm ] && cp -r set "/dev/shm/iobench-$$" 2>/dev/null; then
        CLEANUP="rm -rf /dev/shm/iobench-$$"
        expect 1 mpi 2 "$IOBENCH" $RUN --runs 1 --data "/dev/shm/iobench-$$" --drop-caches=strict
        says "rank 0 on $(uname -n): "
    fi

    # A limit applies to the job, whichever rank reads the odd samples, or to each rank.
    expect 0 mpi 3 "$IOBENCH" $RUN --runs 1 --limit-samples 31 --json few.json
    grep -A2 '"epoch": 1' few.json | grep -q '"samples": 31,' || die "few.json has not 31 samples: $(cat few.json)"
    expect 0 mpi 3 "$IOBENCH" $RUN --runs 1 --limit-samples-per-rank 11 --json few.json
    grep -A2 '"epoch": 1' few.json | grep -q '"samples": 33,' || die "few.json has not 33 samples: $(cat few.json)"
    expect 2 mpi 3 "$IOBENCH" $RUN --runs 1 --limit-samples 2
    says "--limit-samples 2: fewer than the 3 ranks"

    # A slow rank, in a job whose ranks run independently and in one whose ranks wait for each
    # other.
    # shellcheck disable=SC2016 # the shell of each rank expands it
    slow='[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK-}}" != 1 ] || set -- "$@" --limit-rate 20k; exec "$@"'
    expect 0 mpi 3 sh -c "$slow" sh "$IOBENCH" $RUN --runs 1 --limit-samples-per-rank 30
    says "Straggler rank 1 on $(uname -n)" "wait for batches (limit: rate)"
    expect 0 mpi 3 sh -c "$slow" sh "$IOBENCH" $RUN --runs 1 --limit-samples-per-rank 30 --decode jpeg:size=32 --json slow.json \
        --trainer network:lenet,classes=3,threads=1,rate=0.0001
    says "Straggler rank 1 on $(uname -n)" "wait for batches"
    grep -A1 '"straggler": {' slow.json | grep -q '"rank": 1' || die "slow.json names another rank"
}

SLURM_STEP_NUM_TASKS=4 expect 1 "$IOBENCH" run --data set
says "SLURM_STEP_NUM_TASKS=4" "cannot find each other" "iobench doctor --launch"
echo "ranks share a job"
