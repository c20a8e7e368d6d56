#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: tests/load.sh [-n BUSY] [-r ROUNDS] [-j JOBS] [-m MIB] [-i] [MAKE-ARGUMENT...]
# Run `make check` of the build folder (the current one) while the machine is under load: a test may
# be slow then, never wrong. All load ends with this script.
#   -n BUSY    processes that compute (12)
#   -r ROUNDS  runs of the whole suite in a row (3)
#   -j JOBS    tests at a time (the number of CPUs)
#   -m MIB     memory that one more process writes again and again (0)
#   -i         one more process writes files and waits for the disk
# Arguments are make's: TESTS="tests/cli/run.sh tests/unit/test_cold" runs only these.
# Exit status 1: a test failed in a round.
set -u
busy=12 rounds=3 jobs=$(nproc) memory=0 disk=no
while getopts n:r:j:m:i option; do
    case $option in
    n) busy=$OPTARG ;;
    r) rounds=$OPTARG ;;
    j) jobs=$OPTARG ;;
    m) memory=$OPTARG ;;
    i) disk=yes ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -f Makefile ] || { echo "$0: run it in the build folder" >&2; exit 2; }

work=$(mktemp -d "${TMPDIR:-/var/tmp}/iobench-load-XXXXXX") || exit
load='' make=''
# shellcheck disable=SC2317 # called by trap
stop() {
    # shellcheck disable=SC2086 # a list
    kill $make $load 2>/dev/null
    wait
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM

# start PROGRAM: in awk, while this script lives. It checks that itself, in case the script is
# killed.
start() {
    awk -v parent=$$ -v bytes=$((memory << 20)) -v file="$work/data" '
        function is_wanted() { return (getline line <("/proc/" parent "/stat")) > 0 && !close("/proc/" parent "/stat") }
        BEGIN { while (is_wanted()) {'"$1"'} }' &
    load="$load $!"
}
for _ in $(seq "$busy"); do
    start 'for (i = 0; i < 1000000; i++) x += i * i'
done
[ "$memory" = 0 ] || start 'for (text = "x"; length(text) < bytes; text = text text) { }'
[ "$disk" = no ] || start 'for (i = 0; i < 65536; i++) printf "%1024s", i >file; close(file); system("sync " file)'

failed=0
for round in $(seq "$rounds"); do
    began=$(date +%s)
    make -k -j"$jobs" check "$@" >"load-$round.log" 2>&1 &
    make=$!
    wait $make || failed=1 # in the background, so that a signal ends the wait
    make=
    took=$(($(date +%s) - began))
    counts=$(sed -n 's/^# \(PASS\|FAIL\|SKIP\|ERROR\): *\([0-9]*\)$/\1 \2/p' "load-$round.log" |
        awk '{ count[$1] += $2 } END { printf "%d passed, %d failed, %d skipped", count["PASS"],
            count["FAIL"] + count["ERROR"], count["SKIP"] }')
    printf 'round %d beside %d busy processes: %s in %d s\n' "$round" "$busy" "$counts" "$took"
    sed -n 's/^\(FAIL\|ERROR\): \([^ ]*\)$/\1 \2/p' "load-$round.log" | while read -r what test; do
        echo "  $what $test"
        cp "$test.log" "load-$round-$(echo "$test" | tr / -).log"
    done
done
exit $failed
