#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench monitor: lines on time, null for unknown values in JSON, the exit status of a command.
. "$(dirname "$0")/cli.sh"

expect 0 "$IOBENCH" monitor --interval=50ms --count=3 --probes=cpu,memory .
says user iowait cache GB
[ "$(printf '%s\n' "${out-}" | grep -c '^ *[0-9]*\.')" = 3 ] || die "not three lines"

expect 0 "$IOBENCH" monitor --interval=50ms --count=2 --probes=cpu --json
says '"cpu_user_percent":' '"nfs_read_bytes_per_s":null'

# The command ends when it sees lines, so lines appear while it runs.
# shellcheck disable=SC2016 # the command's shell expands it
expect 7 "$IOBENCH" monitor --json="$T/lines" --interval=50ms . -- \
    sh -c 'while [ "$(wc -l <"$1")" -lt 2 ]; do sleep 0.05; done; echo out; exit 7' sh "$T/lines"
says out 'this machine' peak
expect 1 "$IOBENCH" monitor . -- "$T/none"
says 'cannot run:'
expect 143 "$IOBENCH" monitor . -- sh -c 'kill -TERM $$'

# Reads at the start of a command count too; the rates times the intervals give the count. Not dd's: that of uutils has
# no buffer that O_DIRECT takes.
cat >read.py <<'END'
import mmap, os, sys
file, buffer = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, int(sys.argv[2]))
for _ in range(int(sys.argv[3])):
    os.readv(file, [buffer])
END
head -c 8388608 /dev/urandom >"$T/read"
sync "$T/read"
python3 read.py "$T/read" 1048576 1 2>/dev/null || skip "no python3, or files here are not read directly"
expect 0 "$IOBENCH" monitor --json="$T/lines" --interval=1s --probes=disk,cpu "$T" -- \
    python3 read.py "$T/read" 8388608 1
awk -F'"(interval_s|storage_read_bytes_per_s)":' '{ total += $2 * $3; known += $3 !~ /^null/ }
    END { if (known && total < 8388600) { print total; exit 1 } }' "$T/lines" ||
    die "not all of 8 MiB: $(cat "$T/lines")"

# What it says of the command is what the kernel says to the command itself.
echo 'import resource; print("mine", resource.getrusage(resource.RUSAGE_SELF).ru_inblock * 512)' >>read.py
expect 0 "$IOBENCH" monitor --probes=cpu . -- python3 read.py "$T/read" 8388608 1
printf '%s\n' "${out-}" | awk '$1 == "mine" { mine = $2 / 1e6 } match($0, /it read [0-9.]* MB/) { said = substr($0, RSTART + 8) + 0 }
    END { exit said < mine - 0.06 || said > mine + 2 }' || die "the command's own reads: ${out-}"

# Those that it leaves behind count as well, and are told while they run.
# shellcheck disable=SC2016 # the command's shell expands it
expect 0 "$IOBENCH" monitor --probes=cpu . -- sh -c '(sh -c "echo \$\$ >reader; python3 read.py \"$1\" 8388608 1; true" >/dev/null 2>&1 &)
    for i in $(seq 1200); do [ -s reader ] && grep -q "^State:.Z" "/proc/$(cat reader)/status" && break; sleep 0.1; done' sh "$T/read"
printf '%s\n' "${out-}" | awk 'match($0, /it read [0-9.]* MB/) { said = substr($0, RSTART + 8) + 0 } END { exit said < 8.3 }' ||
    die "what an orphan read: ${out-}"
# shellcheck disable=SC2016
expect 0 "$IOBENCH" monitor --probes=cpu . -- sh -c '(sh -c "echo \$\$ >orphan; exec sleep 600" >/dev/null 2>&1 &)
    for i in $(seq 1200); do [ -s orphan ] && break; sleep 0.1; done'
kill "$(cat orphan)"
says "it read at least " "not counted: processes that it left behind and that still run"

# Signals go to the command, which sends them to its parent. Some may be ignored here, as by nohup.
printf '%s\n' 'import os, signal, sys' 'for name in "HUP", "INT", "QUIT":' \
    '    signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)' 'os.execv(sys.argv[1], sys.argv[1:])' >fresh.py
for signal in HUP INT QUIT TERM USR1 USR2; do
    # shellcheck disable=SC2016 # the command's shell expands it
    expect 9 python3 fresh.py "$IOBENCH" monitor --probes=cpu . -- \
        sh -c 'trap "exit 9" "$1"; kill -s "$1" $PPID; for i in $(seq 600); do sleep 0.1; done' sh $signal
done

# Without a command it goes on until it is asked to end.
"$IOBENCH" monitor --probes=cpu --interval=100ms . >log 2>&1 &
while ! [ -s log ] && kill -0 $!; do sleep 0.1; done
{ kill $! && wait $!; } || die "did not end by itself: $(cat log)"

# The mean latency is over reads, not over lines.
expect 0 "$IOBENCH" monitor --json="$T/lines" --interval=100ms --probes=disk,cpu "$T" -- sh -c "
    python3 read.py '$T/read' 4096 2000; sleep 0.2; python3 read.py '$T/read' 8388608 1"
printf '%s\n' "${out-}" | python3 -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
said = [line.split() for line in sys.stdin if line.endswith(" storage_read_ms\n")]
count = sum((row["storage_read_count_per_s"] or 0) * row["interval_s"] for row in rows)
ms = sum((row["storage_read_count_per_s"] or 0) * row["interval_s"] * row["storage_read_ms"]
         for row in rows if row["storage_read_ms"] is not None)
assert count == 0 or abs(float(said[0][2]) - ms / count) < 0.006, (said, ms / count)
' "$T/lines" || die "the mean time of a read"
