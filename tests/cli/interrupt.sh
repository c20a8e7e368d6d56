#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SIGINT ends a run cleanly: completed parts are shown, marked invalid. So is a run during which the
# process was stopped.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
make_set recordio 40
tried="iobench, interrupted"
[ -r /proc/self/io ] || skip "this kernel does not count what a process reads"
set_bytes=$(cat "$tmp"/recordio/*.rec | wc -c)
# read_sets N: waits until $pid has read the set N times more.
read_sets() {
    goal=$(($(sed -n 's/^rchar: //p' /proc/$pid/io) + $1 * set_bytes))
    while [ "$(sed -n 's/^rchar: //p' /proc/$pid/io)" -lt $goal ]; do sleep 0.05; done
}
# Interrupts $pid after it has read the set five times: some runs or epochs are complete then.
interrupt() {
    read_sets 5
    kill -INT $pid
}
# A thousand runs of 0.2 s each.
"$IOBENCH" --data "$tmp/recordio" --reader pread --no-calibrate --runs 1000 -B 10 --trainer replay:rate=200 \
    --json "$tmp/a.json" >"$tmp/out" 2>"$tmp/err" &
pid=$!
interrupt
wait $pid
status=$?
[ $status -eq 1 ] || fault "exit status $status, not 1"
out "INVALID"
out "interrupted"
err "interrupted"
# Interrupts also end epochs of a few milliseconds.
"$IOBENCH" --data "$tmp/recordio" --reader pread --no-calibrate --runs 1 --epochs 1000000 -B 10 --decode none \
    >"$tmp/out" 2>"$tmp/err" &
pid=$!
interrupt
wait $pid
status=$?
[ $status -eq 1 ] || fault "exit status $status, not 1, in short epochs"
out "interrupted"
grep -q '"valid": false' "$tmp/a.json" || fault "the JSON does not say that it is invalid"
# Stopped now and then; once would do, were it certain to be in an epoch and not between two.
"$IOBENCH" --data "$tmp/recordio" --reader pread --no-calibrate --runs 1000 -B 10 --trainer replay:rate=200 \
    --json "$tmp/b.json" >"$tmp/out" 2>"$tmp/err" &
pid=$!
for turn in 1 2 3 4 5; do
    read_sets 1
    kill -STOP $pid
    until grep -q '^State:.T' /proc/$pid/status; do sleep 0.01; done
    kill -CONT $pid
done
interrupt
wait $pid
grep -q 'the process was stopped and continued' "$tmp/b.json" || fault "a stopped run passes as valid"
out "was stopped and continued"
finish
