#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A killed rank ends its job: the launcher names it. Where the launcher goes on without it, as srun does
# without --kill-on-bad-exit, the rank that waits for it names it, and the job fails. With
# IOBENCH_LONG=1 also of run and train.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

expect 0 "$IOBENCH" pack synthetic:count=64,classes=3,mean=6k,seed=5 set

# Run 2 ranks, kill the last when READY is true, and wait for the end of the job.
kill_rank_1() { # READY COMMAND...
    ready=$1
    shift
    rm -rf kept began rank*
    : >log
    if [ "${recovery-}" ]; then
        # shellcheck disable=SC2016 # the shell of each rank expands it
        mpi 2 "$recovery" sh -c '"$@" & echo $! >rank$OMPI_COMM_WORLD_RANK
            wait $!; echo "exit status $?"' sh "$@" >log 2>&1 &
    else
        mpi 2 "$@" >log 2>&1 &
    fi
    job=$!
    while ! eval "$ready" && kill -0 $job 2>/dev/null; do sleep 0.05; done
    eval "$ready" || die "ended by itself: $*: $(cat log)"
    kill -KILL "$(cat rank1 2>/dev/null || last_rank $job)"
    tries=0
    while kill -0 $job 2>/dev/null; do
        sleep 0.1
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || die "does not end: $*: $(cat log)"
    done
    status=0
    wait $job || status=$?
    if [ "${recovery-}" ]; then
        grep -q '^exit status 1$' log || die "rank 0 did not fail: $*: $(cat log)"
        grep -q "rank 0 on .*rank 1\b" log || die "rank 0 does not name rank 1: $*: $(cat log)"
    else
        [ $status != 0 ] || die "succeeded without a rank: $*: $(cat log)"
        is_mute || tr '\n' ' ' <log | grep -q "rank 1 with PID.*Killed\|EXIT CODE: 9" || die "nobody names rank 1: $*: $(cat log)"
    fi
}

measuring="grep -q 'measuring 2 ranks' log"
# shellcheck disable=SC2016 # the shell of each rank expands it
slow='[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK-}}" != 1 ] || set -- "$@" --limit-rate 10B; exec "$@"'
kill_net() { # TRANSPORT
    kill_rank_1 "$measuring" "$IOBENCH" net --transport "$1" --repeats 10000 --repeat-time 100ms --rank-timeout 2s
}
kill_run() {
    kill_rank_1 "[ -e began ]" sh -c "$slow" sh "$IOBENCH" run --data set --memory 16m -t 1 --calibrate=no \
        --decode checksum --batch-size 1 --runs 1 --rank-timeout 2s --drop-caches --server-drop-cmd "touch $T/began"
}
kill_train() {
    kill_rank_1 "[ -e kept/last.checkpoint ]" "$IOBENCH" train --network lenet --size 32 --classes 3 --data set \
        --batch-size 16 --decode-threads 1 --compute-threads 1 --lr 0.001 --memory 16m --epochs 100000 \
        --checkpoint kept --rank-timeout 2s
}

long() { [ -z "${IOBENCH_LONG-}" ] || "$@"; }
kill_net mpi
long kill_run
long kill_train
if is_open_mpi; then
    recovery=--enable-recovery
    kill_net tcp
    long kill_net mpi
    long kill_run
    long kill_train
fi
echo "a killed rank ends its job and is named"
