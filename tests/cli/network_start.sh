#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A signal ends a command while its network is made, which may take minutes: no more of it is made,
# nor by the other ranks.
# shellcheck disable=SC2154 # expect sets out
. "$(dirname "$0")/cli.sh"
built_with DNNL || skip "built without oneDNN"
SHIM=$PROGRAMS/tests/cli/signal_at.so
[ -e "$SHIM" ] || skip "signal_at.so is not built"
! nm -D "$IOBENCH" 2>/dev/null | grep -q '__asan_init\|__tsan_init\|__ubsan_handle' ||
    skip "a sanitizer wants to be the first library"

expect 0 "$IOBENCH" pack synthetic:count=60,classes=3,mean=6k,seed=5 set
expect 0 "$IOBENCH" train --network lenet --size 32 --classes 3 --data set --batch-size 20 --export init

# at N COMMAND...: SIGTERM when it makes its N-th primitive; it makes that one, and says why it ends.
at() {
    number=$1
    shift
    expect 1 env LD_PRELOAD="$SHIM" SIGNAL_AT="$number" "$IOBENCH" "$@"
    says "iobench $1: " "interrupted"
    made=$(printf '%s\n' "$out" | sed -n 's/^\([0-9]*\) primitives$/\1/p')
    [ -n "$made" ] || skip "oneDNN's calls cannot be seen here"
    [ "$made" = "$number" ] || die "interrupted at primitive $number, it made $made: $*"
}

mkdir outputs
for number in 1 2 60; do # while it opens, not before
    at "$number" train --network resnet50 --size 64 --data set --batch-size 8 --checkpoint outputs --json result.json \
        --export outputs/weights --compute-threads 1 -t 1
    at "$number" run --trainer resnet50:backend=cpu --decode jpeg:size=64 --data set --batch-size 8 --no-calibrate \
        --memory 16m
    at "$number" infer --network resnet50 --size 64 --data set --batch-size 8,4 --compute-threads 1 --decode-threads 1 \
        --json result.json
done
# The programs of the last, smaller batch, and the weights of a file.
total() { # COMMAND...: the primitives of a whole one
    expect 0 env LD_PRELOAD="$SHIM" SIGNAL_AT=0 "$IOBENCH" "$@"
    printf '%s\n' "$out" | sed -n 's/^\([0-9]*\) primitives$/\1/p'
}
set -- train --network lenet --size 32 --classes 3 --data set --batch-size 40 --init init --compute-threads 1
all=$(total "$@")
[ "$all" -gt 20 ] || die "the whole start takes $all primitives only"
for number in $(seq 1 "$all"); do
    at "$number" "$@"
done
[ -z "$(ls -A outputs)" ] || die "left behind: $(ls -A outputs)"
[ ! -e result.json ] || die "a result of nothing"

# ---- a signal to one rank alone: the other, which takes its time, does not go on to the end ----
with_mpi || exit 0
cat >rank.sh <<'RANK'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
case $rank in
"$SIGNALLED") env LD_PRELOAD="$SHIM" SIGNAL_AT="$NUMBER" "$@" ;;
*) env LD_PRELOAD="$SHIM" SIGNAL_AT=0 SIGNAL_NAP="$NAP" "$@" ;;
esac
status=$?
: >"ended-$rank" # both have spoken before the launcher ends the job
until [ -e "ended-$((1 - rank))" ]; do sleep 0.05; done
exit $status
RANK
export SHIM SIGNALLED NUMBER NAP
one_of_two() { # RANK NUMBER NAP MOST COMMAND...: the other makes fewer than MOST, and naps ms before each
    SIGNALLED=$1 NUMBER=$2 NAP=$3 most=$4
    shift 4
    rm -f ended-*
    expect 1 "$MPIRUN" -n 2 sh rank.sh "$IOBENCH" "$@"
    says "iobench $1: rank $SIGNALLED on " ": interrupted"
    made=$(printf '%s\n' "$out" | sed -n 's/^\([0-9]*\) primitives$/\1/p' | sort -n | tail -n 1)
    [ "${made:-$most}" -lt "$most" ] ||
        die "rank $SIGNALLED was interrupted at $NUMBER, and one made ${made:-no} primitives: $*"
}
set -- train --network resnet50 --size 64 --data set --batch-size 8 --compute-threads 1 -t 1
all=$(total "$@" --epochs 1 --limit-samples 12) # a batch, and the last, smaller one
one_of_two 1 1 200 100 "$@"
one_of_two 0 $((all * 2 / 3)) 50 "$all" "$@"
set -- run --trainer resnet50:backend=cpu --decode jpeg:size=64 --data set --batch-size 8 --no-calibrate --memory 16m --runs 1
all=$(total "$@" --limit-samples 12)
one_of_two 0 1 200 100 "$@"
one_of_two 1 $((all * 2 / 3)) 50 "$all" "$@"
exit 0
