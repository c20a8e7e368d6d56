#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks learn the same as a single process; only rank 0 prints; a killed rank ends the job, is
# named, and leaves the last checkpoint intact.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

steps=4
[ "${IOBENCH_LONG:-0}" = 0 ] || steps=20
for count in 1 2 3 4; do
    expect 0 mpi $count "$RANKS" 3 auto auto $steps
    says "$count ranks: tiny differs by" "$count ranks: lenet differs by"
done

# Ranks whose backends lay out gradients differently would add up unrelated ones.
if built_with DNNL; then
    mpi_pair "$RANKS" 3 auto cpu -- "$RANKS" 3 auto reference >log 2>&1 &&
        die "two layouts of gradients were added up: $(cat log)"
    [ "$(grep -c "FAILED: exchange mpi: the ranks store gradients in different layouts" log)" = 2 ] ||
        die "not both ranks name the layouts: $(cat log)"
fi

expect 0 "$IOBENCH" pack synthetic:count=64,classes=3,mean=6k,seed=5 set
LENET="train --network lenet --size 32 --classes 3 --data set --batch-size 8 -t 1
    --compute-threads 1 --lr 0.001 --memory 16m"
# shellcheck disable=SC2086 # words without blanks
{
    expect 0 mpi 2 "$IOBENCH" $LENET --epochs 2 --eval-data set --checkpoint both --json both.json
    # shellcheck disable=SC2154 # expect sets it
    [ "$(printf '%s\n' "$out" | grep -c 'lenet on')" = 1 ] || die "not one rank spoke"
    grep -q '"ranks": 2' both.json || die "both.json does not know of two ranks"

    # Gradients of two batches are exchanged at once: the same updates.
    expect 0 mpi 2 "$IOBENCH" $LENET --batch-size 4 --accumulate 2 --epochs 2 --json halves.json
    python3 - <<'END' || die "two batches are not as one of twice the size"
import json
both, halves = (json.load(open(name))["epochs"] for name in ("both.json", "halves.json"))
for a, b in zip(both, halves):
    assert abs(a["loss"] - b["loss"]) < 1e-5 * a["loss"] and a["rate"] == b["rate"], (a, b)
END

    mpi 3 "$IOBENCH" $LENET --epochs 100000 --checkpoint killed >log 2>&1 &
    job=$!
    while [ ! -e killed/last.checkpoint ] && kill -0 $job 2>/dev/null; do sleep 0.05; done
    victim=$(last_rank $job)
    kill -KILL "$victim"
    wait $job && die "a job without one of its ranks succeeded" # or the job never ends
    # Open MPI names the rank; MPICH names one of the ended processes and its host.
    is_mute || tr '\n' ' ' <log | grep -q "process rank [0-2] .*signal 9\|PID [0-9]* RUNNING AT $(uname -n)" ||
        die "the killed rank is not named: $(cat log)"
    "$IOBENCH" $LENET --epochs 1 --checkpoint killed --resume >log 2>&1 &&
        die "a checkpoint of three ranks went on as one"
    grep -q "24 samples per update over all ranks" log || die "the checkpoint is not good: $(cat log)"

    # Ranks that were not started alike, or that start from other weights, would learn different networks or wait for
    # each other for ever.
    # shellcheck disable=SC2016 # the shell of each rank expands it
    for option in lr accumulate eval-every checkpoint; do
        expect 1 mpi 2 sh -c 'option=$1; shift; [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK-}}" != 1 ] || set -- "$@" --$option 2; exec "$@"' \
            sh $option "$IOBENCH" $LENET --lr 1 --eval-data set
        says "iobench train: --$option of rank 1 differs from rank 0's"
    done
    "$IOBENCH" pack synthetic:count=1,classes=3,mean=6k one >log 2>&1 || die "no set: $(cat log)"
    expect 1 mpi 2 "$IOBENCH" $LENET --eval-data one
    says "--eval-data one: 2 ranks exceed its 1 sample; use fewer ranks"
    for rank in 0 1; do
        mkdir at$rank
        (cd at$rank && "$IOBENCH" $LENET --data ../set --batch-size 16 --lr 0.00$((rank + 1)) --checkpoint kept \
            --export weights.safetensors) >log 2>&1 || die "no checkpoint: $(cat log)"
    done
    # A data set of as many samples and bytes on each node, but in another order.
    "$IOBENCH" pack set at0/mine -f recordio --shards 2 >log 2>&1 || die "no set: $(cat log)"
    cp -r at0/mine at1/mine
    mv at1/mine/train-00000-of-00002.rec swapped
    mv at1/mine/train-00001-of-00002.rec at1/mine/train-00000-of-00002.rec
    mv swapped at1/mine/train-00001-of-00002.rec
    # shellcheck disable=SC2016 # likewise
    expect 1 mpi 2 sh -c 'cd "at${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"' sh "$IOBENCH" $LENET --data mine
    says "mine: the data set differs between nodes: rank 1 on $(uname -n)"
    # shellcheck disable=SC2016 # likewise
    for from in "--checkpoint kept --resume" "--init weights.safetensors"; do
        expect 1 mpi 2 sh -c 'cd "at${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"' sh \
            "$IOBENCH" $LENET --data ../set --lr 0.001 --epochs 2 $from
        says ": rank 1 on $(uname -n) found other weights there than rank 0 on $(uname -n)"
    done
}

# Rank 0 prints what another rank has to say: one that reads in another way is slower than the others.
REFUSE="$PROGRAMS/tests/cli/refuse io_uring_setup 1"
# shellcheck disable=SC2086 # words without blanks
if built_with URING && $REFUSE true 2>/dev/null && "$IOBENCH" run --data set --reader uring --runs 1 >log 2>&1; then
    for command in "run --data set --runs 1 --no-calibrate --decode none" "$LENET --epochs 1" \
        "checkpoint saved --bytes 1m --writes 1 --reads 1"; do
        mpi_pair "$IOBENCH" $command -- $REFUSE "$IOBENCH" $command >log 2>&1 || die "failed: $command: $(cat log)"
        out=$(cat log)
        says "ote rank 1 on $(uname -n): io_uring is refused here"
    done
fi
echo "1 to 4 ranks agree; a killed one ended its job; others than alike do not start"
