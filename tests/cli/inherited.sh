#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# State inherited from a parent process: ignored and blocked signals, closed descriptors, limits.
# None of it may hang the program, make it ignore signals, or send output into a data set.
# shellcheck disable=SC2086,SC2016 # with is words; await evaluates
. "$(dirname "$0")/cli.sh"
command -v timeout >/dev/null || skip "there is no timeout(1)"
command -v python3 >/dev/null || skip "python3 is not installed"

# Wait until the shell command $1 succeeds, at most two minutes.
await() {
    tries=0
    until eval "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 2400 ] || die "never came true: $1"
        sleep 0.05
    done
}
# ended STATUS: the last started process must exit with STATUS.
ended() {
    wait "$pid" && status=0 || status=$?
    [ "$status" = "$1" ] || die "exit status $status, not $1"
}
# with CODE COMMAND...: run COMMAND after Python CODE has changed the state it inherits.
mkdir bin
cat >bin/with <<'END'
import os, resource, signal, sys
exec(sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])
END
with="python3 $T/bin/with"

# ---- SIGCHLD ignored: the kernel discards the exit status of children ----
deaf='signal.signal(signal.SIGCHLD, signal.SIG_IGN)'
expect 3 timeout -k 9 120 $with "$deaf" "$IOBENCH" monitor -i 50ms -- sh -c 'exit 3'
expect 0 timeout -k 9 120 $with "$deaf" "$IOBENCH" monitor -i 50ms -- sh -c 'sleep 0.1; (exit 4); [ $? = 4 ]'
awk 'BEGIN { 
    print "time_s,phases,read_bytes_per_s,from_local_bytes_per_s"
    for (i = 1; i < 9; i++)
        print i ",epoch 1,1e6,1e6"
}' >series.csv
printf '#!/bin/sh\necho "cannot draw" >&2\nexit 9\n' >bin/rsvg-convert
chmod +x bin/rsvg-convert
expect 1 timeout -k 9 120 $with "$deaf" env PATH="$T/bin:$PATH" "$IOBENCH" plot --sandbox=no -o x.png series.csv
says "exit status 9" "cannot draw"
expect 0 "$IOBENCH" pack synthetic:count=20,mean=6000 set -f recordio
timeout -k 9 120 $with "$deaf" "$IOBENCH" run --data set --runs 1 --decode none --no-calibrate \
    --drop-caches --server-drop-cmd 'echo emptied; exit 0' --json r.json >out 2>&1 && status=0 || status=$?
[ $status -le 1 ] || die "exit status $status: $(cat out)" # 1: other programs keep caches warm
grep -q '"output": "emptied"' r.json || die "the server's command: $(cat r.json)"

# ---- monitor forwards signals to its command, and ends with its status ----
# Signals ignored from the start (SIGHUP under nohup) stay ignored, also in the command.
heard='[signal.signal(s, signal.SIG_DFL) for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)]'
for signal in TERM HUP USR1; do
    rm -f ready
    $with "$heard" "$IOBENCH" monitor -- sh -c "trap 'exit 9' $signal; echo >ready; while :; do sleep 0.05; done" >out 2>&1 &
    pid=$!
    await '[ -e ready ]'
    kill -$signal $pid
    ended 9
done
rm -f ready
"$IOBENCH" monitor -- sh -c 'echo >ready; exec sleep 600' >out 2>&1 &
pid=$!
await '[ -e ready ]'
kill -TERM $pid
ended 143
# A process that stops and continues is waited for.
rm -f ready
"$IOBENCH" monitor -i 50ms -- sh -c 'echo $$ >ready; kill -STOP $$; exit 6' >out 2>&1 &
pid=$!
await '[ -s ready ] && grep -q "^State:.T" /proc/$(cat ready)/status'
kill -CONT "$(cat ready)"
ended 6
# A closed pipe ends it, regardless of the inherited SIGPIPE disposition.
for how in SIG_IGN SIG_DFL; do
    timeout -k 9 120 $with "signal.signal(signal.SIGPIPE, signal.$how)" "$IOBENCH" monitor -i 50ms 2>/dev/null |
        head -n 3 >out
    [ -s out ] || die "no line of monitor"
done

# ---- blocked signals ----
$with 'signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))' "$IOBENCH" run --data set --runs 1000 -B 10 \
    --no-calibrate --trainer replay:rate=20 >out 2>&1 &
pid=$!
# 15 is caught, and by the program: a signal that the forked shell catches is lost when it executes.
await 'grep -q "^iobench$" /proc/$pid/comm && grep -q "^SigCgt:.*[4-7c-f]...$" /proc/$pid/status'
kill -TERM $pid
ended 1
grep -q interrupted out || die "not interrupted: $(cat out)"

# ---- an interrupt also ends the server's command ----
rm -f ready
"$IOBENCH" run --data set --runs 1 --no-calibrate --decode none --drop-caches \
    --server-drop-cmd 'echo $$ >ready; sleep 600' >out 2>&1 &
pid=$!
await '[ -s ready ]'
kill -TERM $pid
ended 1
await '[ ! -e /proc/$(cat ready) ]'

# ---- closed descriptors: files are then opened as 0, 1 and 2 ----
"$IOBENCH" pack synthetic:count=40,mean=6000 closed -f recordio <&- >&- 2>&- && status=0 || status=$?
[ $status -le 1 ] || die "exit status $status with all descriptors closed"
expect 0 "$IOBENCH" verify closed
"$IOBENCH" run --data closed --runs 1 --no-calibrate --json "$T/closed.json" <&- >&- 2>&- && status=0 || status=$?
[ $status = 1 ] || die "a table that nobody got: exit status $status"
python3 -m json.tool closed.json >/dev/null || die "the JSON has other output in it"
expect 0 "$IOBENCH" verify closed

# ---- limits ----
expect 1 $with 'resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))' \
    "$IOBENCH" pack synthetic:count=40,mean=6000 large -f recordio
says "File too large" large
# As few as a reader leaves to the rest of the program; it opens one file at a time.
expect 0 $with 'os.closerange(3, 64); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))' \
    "$IOBENCH" run --data set --runs 1 --no-calibrate --decode none
# A small stack, which the program raises if it may, and does without if not. Threads have their own size.
lenet="lenet --size 32 --classes 2 --data stacks --compute-threads 2 --decode-threads 1"
expect 0 "$IOBENCH" pack synthetic:count=20,classes=2,mean=6000 stacks
small='(98304, 98304)'
# Sanitizers put more on it, in functions of their own.
! nm -D "$IOBENCH" 2>/dev/null | grep -q '__asan_init\|__tsan_init\|__ubsan_handle' || small='(1048576, 1048576)'
for limit in '(49152, -1)' "$small"; do
    small="resource.setrlimit(resource.RLIMIT_STACK, $limit)"
    expect 0 $with "$small" "$IOBENCH" run --data stacks --runs 2 -B 5 --against '--iodepth 4'
    expect 0 $with "$small" "$IOBENCH" train --network $lenet -B 5 --json "trained $limit.json"
    expect 0 env OMP_STACKSIZE=16k $with "$small" "$IOBENCH" infer --network $lenet --compute-threads 2 -B 5
    expect 0 $with "$small" "$IOBENCH" report "trained $limit.json" -o "trained $limit.html"
done
# Nobody reads the table.
expect 1 sh -c "'$IOBENCH' run --data set --runs 1 --no-calibrate --decode none >/dev/full"
says "No space left on device"
exit 0
