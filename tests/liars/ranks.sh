#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks and nodes that lie to each other, or about their identity.
# shellcheck disable=SC2086,SC2034,SC2154 # words without blanks; what cli.sh shares
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/../cluster/cluster.sh"
# shellcheck source=tests/liars/liars.sh
. "$SRCDIR/tests/liars/liars.sh"
is_open_mpi || skip "a rank gets options of its own by Open MPI's launcher"
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k set -f shards --shards 2
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k,seed=2 other -f shards --shards 2
READ="--runs 1 --no-calibrate --memory 16m --decode checksum --bs 16k --digest"
digest_of() { printf '%s\n' "$out" | sed -n 's/^ *Digest *\([0-9a-f]*\) .*/\1/p'; }
expect 0 "$IOBENCH" run $READ --data set
whole=$(digest_of)

# pair STATUS FIRST SECOND: `iobench run` on two ranks, each with its own words before its name.
pair() {
    tried="iobench run $READ on two ranks, $2 and $3"
    out=$(mpi_pair env $2 "$IOBENCH" run $READ $4 -- env $3 "$IOBENCH" run $READ ${5-$4} 2>&1)
    status=$?
    [ "$status" = "$1" ] || missed="exit status $status, not $1"
}

# No lie.
honest_ranks() {
    pair 0 A=1 A=1 "--data set"
    [ "$(digest_of)" = "$whole" ] || die "two honest ranks have another digest"
}

swapped() {
    lie "the launcher's variables say the ranks the other way round"
    pair 0 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_RANK=0 "--data set"
    confirmed "MPI knows better: all samples once, digest $(echo "$whole" | cut -c 1-8)..." \
        [ "$(digest_of)" = "$whole" ]
}

same_rank() {
    lie "two processes without MPI are both rank 0 of 2"
    run 0 --data set --ranks 2 --rank 0 --decode checksum --digest
    caught "only this rank"
}

strangers() {
    lie "a launcher that started two ranks which cannot find each other"
    out=$(OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$IOBENCH" run $READ --data set 2>&1)
    status=$?
    [ $status != 0 ] || missed="exit status 0"
    caught "these processes were started together but cannot find each other"
}

other_set() {
    lie "a rank reads another data set"
    pair 1 A=1 A=1 "--data set" "--data other"
    caught "the data set differs between nodes"
}

# Copies of one set, large beside what is read to tell its format: the second one is in memory, mapped,
# so other tests cannot drop it.
two_paths() {
    lie "two ranks of a node read copies of a set, and that of the second one is in memory"
    command -v python3 >/dev/null || { cannot "python3 is not installed" && return 0; }
    expect 0 "$IOBENCH" pack synthetic:count=2500,mean=20k one -f shards --shards 2
    expect 0 "$IOBENCH" run $READ --data one # makes the index
    cp -a one two
    sync
    hold_mapped "two/train-*"
    "${IOBENCH%/*}/cachectl/cachectl" evict one >/dev/null
    pair 0 A=1 A=1 "--data one" "--data two"
    case $(flat) in *"valid, warm"*"rank 1 "*) ;; *) missed=${missed:-rank 1 is not named} ;; esac
    caught "valid, warm"
    lie "... and the job is strict"
    is_root || { release_held && return 0; }
    pair 1 A=1 A=1 "--data one --drop-caches=strict" "--data two --drop-caches=strict"
    release_held
    caught "not verified cold: "
}

other_seed() {
    lie "a rank shuffles with another seed: samples come twice, others never"
    pair 1 A=1 A=1 "--data set" "--data set --seed 2"
    caught "--seed of rank 1 differs from rank 0's"
    lie "a rank stays for fewer epochs"
    pair 1 A=1 A=1 "--data set --epochs 3" "--data set --epochs 2"
    caught "--epochs of rank 1 differs from rank 0's"
    lie "a rank does not drop its caches"
    pair 1 A=1 A=1 "--data set --drop-caches" "--data set"
    caught "--drop-caches of rank 1 differs from rank 0's"
}

rank_clock() {
    lie "the clock of one rank steps"
    can_lie || return 0
    pair 1 A=1 "LD_PRELOAD=$SHIM LIAR=clock-ahead" "--data set --reader pread --limit-rate 8MiB"
    caught "rank 1 on"
}
honest_ranks
swapped
same_rank
strangers
other_set
two_paths
other_seed
rank_clock
finish
