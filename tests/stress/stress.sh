# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# For tests that kill or race the program at random moments; sourced. A few rounds by default, all
# with IOBENCH_LONG=1. The moments come from a seed, IOBENCH_SEED or one of today, which is printed:
# the test must pass at any moment.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

seed=${IOBENCH_SEED:-$(date +%s)}
draw=0

rounds() { # IN MAKE CHECK, IN THE LONG RUN
    if [ "${IOBENCH_LONG:-0}" = 1 ]; then echo "$2"; else echo "$1"; fi
}

# took COMMAND...: prints its duration in seconds; output in $T/took.log
took() {
    began=$(date +%s.%N)
    "$@" >"$T/took.log" 2>&1 || die "exit status $?: $*: $(cat "$T/took.log")"
    echo "$began $(date +%s.%N)" | awk '{ printf "%.4f\n", $2 - $1 }'
}

# kill_within SECONDS COMMAND...: start it and kill it at a random moment within SECONDS. $ended is
# 137, or 0 if it finished first; output in $T/killed.log
kill_within() {
    draw=$((draw + 1))
    moment=$(awk -v seed=$((seed % 100000 * 1000 + draw)) -v most="$1" \
        'BEGIN { srand(seed); rand(); printf "%.4f\n", rand() * most }')
    shift
    "$@" >"$T/killed.log" 2>&1 &
    pid=$!
    sleep "$moment"
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null && ended=0 || ended=$?
    case $ended in
    0 | 137) ;;
    *)
        grep -q "epochs are done" "$T/killed.log" || die "exit status $ended before it was killed: $(cat "$T/killed.log")"
        ended=0
        ;;
    esac
}

# refused WORDS COMMAND...: it must soon fail with status 1 and a line with the words.
refused() {
    words=$1
    shift
    expect 1 "$@"
    says "$words"
}
echo "seed $seed"
