#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same command resumes a killed or interrupted sweep: no cell is lost or measured twice.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
make_set recordio 40
tried="iobench sweep, killed"
# A measurement takes at least half a second, and is valid on a busy machine, too.
set -- sweep --data "$tmp/recordio" --no-calibrate --decode none --memory 16m --sample-interval none \
    --limit-rate 480KB/s --bs 8k --batch-size 5,10 --seed 1:3:+1 --runs 1 -o "$tmp/a"
kept() { find "$tmp/a" -name 'cell-*.json' 2>/dev/null | wc -l; }
# ended SIGNAL WANTED OPTIONS...: sends SIGNAL as soon as WANTED measurements are saved. In one process, since
# a shell on a busy machine takes longer to look than two measurements.
ended() {
    python3 -c 'import glob, os, signal, subprocess, sys, time
folder, name, wanted = sys.argv[1:4]
with open("out", "w") as out, open("err", "w") as err:
    sweep = subprocess.Popen(sys.argv[4:], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
while len(glob.glob(folder + "/cell-*.json")) < int(wanted) and sweep.poll() is None: time.sleep(0.02)
sweep.send_signal(getattr(signal, name))
sys.exit(sweep.wait() % 256)' "$tmp/a" "$@"
    status=$?
}
names() { (cd "$tmp/a" && stat -c '%n %i' cell-*.json); }

ended SIGKILL 2 "$IOBENCH" "$@"
[ "$(kept)" -lt 6 ] || fault "it ended before it was killed"
names >"$tmp/first"
# SIGINT ends it cleanly: a table of the finished cells, and exit status 1.
ended SIGINT 4 "$IOBENCH" "$@"
[ $status -eq 1 ] || fault "exit status $status, not 1"
[ "$(kept)" -lt 6 ] || fault "it ended before it was interrupted"
out "Left out"
out "interrupted"
names >"$tmp/second"
# Without --retry: the interrupted one counts as missing.
try 0 "$@"
out "6 measured, 6 valid"
# Files saved first are still unchanged at the end.
names >"$tmp/third"
for earlier in first second; do
    while read -r name inode; do
        grep -qx "$name $inode" "$tmp/third" || fault "$name was measured again after the $earlier end"
    done <"$tmp/$earlier"
done
[ "$(grep -l '"interrupted": true' "$tmp"/a/cell-*.json | wc -l)" = 0 ] || fault "an interrupted measurement was kept"

# ---- a measurement that outlives its sweep is waited for, not repeated ----
rm -r "$tmp/a"
slow() { printf '#!/bin/sh\nwhile [ ! -e "%s/go" ]; do sleep 0.05; done\nexec "$@"\n' "$tmp"; }
slow >"$tmp/slow"
chmod +x "$tmp/slow"
"$IOBENCH" "$@" --launch "$tmp/slow" >"$tmp/out" 2>"$tmp/err" &
pid=$!
while [ ! -e "$tmp/a/sweep.json" ] || ! pgrep -f "^/bin/sh $tmp/slow" >/dev/null; do sleep 0.05; done
kill -KILL $pid
wait $pid
"$IOBENCH" "$@" --launch "$tmp/slow" >"$tmp/out" 2>"$tmp/err" &
pid=$!
tries=0
while ! grep -q "still running" "$tmp/err" && [ $tries -lt 1200 ] && kill -0 $pid 2>/dev/null; do
    tries=$((tries + 1))
    sleep 0.05
done
: >"$tmp/go"
wait $pid
status=$?
[ $status -eq 0 ] || fault "exit status $status, not 0, after waiting"
err "a measurement is still running there"
err "1 of 6 measurements are there already"
out "6 measured, 6 valid"

# ---- a budget measures the base cell first, then cells that change one option ----
rm -r "$tmp/a"
"$IOBENCH" "$@" --budget 1ms >"$tmp/out" 2>"$tmp/err"
[ "$(cd "$tmp/a" && echo cell-*.json)" = cell-00001-run-1.json ] || fault "not the base cell alone: $(ls "$tmp/a")"
out "Left out: 5 of 6 measurements: they would not end within --budget"
# A crash loses one cell.
rm -r "$tmp/a"
printf '#!/bin/sh\ncase "$*" in *--seed=2*) kill -SEGV $$;; esac\nexec "$@"\n' >"$tmp/crash"
chmod +x "$tmp/crash"
try 1 "$@" --launch "$tmp/crash"
out "6 measured, 4 valid"
out "ended by signal 11"
# ---- what ends the sweep and its measurement at once, as a batch system does, leaves it due ----
rm -r "$tmp/a"
# The sweep stands still until the measurement has ended, so that it sees that first.
cat >"$tmp/crash" <<'EOF'
#!/bin/sh
[ -e "$0.told" ] && exec "$@"
: >"$0.told"
kill -STOP $PPID
kill -INT $PPID
{
    while ! grep -q ') Z' /proc/$$/stat; do sleep 0.05; done
    kill -CONT $PPID
} >/dev/null 2>&1 &
echo "iobench train: interrupted" >&2
exit 1
EOF
try 1 "$@" --launch "$tmp/crash"
out "Left out: 6 of 6 measurements: interrupted"
[ "$(kept)" = 0 ] || fault "the interrupted measurement was kept"
try 0 "$@" --launch "$tmp/crash"
out "6 measured, 6 valid"
# ---- no words of a reason make a measurement an interrupted one, which is due again ----
rm -r "$tmp/a"
printf '#!/bin/sh\necho "iobench: never interrupted"\nexit 1\n' >"$tmp/crash"
try 1 "$@" --launch "$tmp/crash"
out "6 measured, 0 valid"
try 1 "$@" --launch "$tmp/crash"
err "6 of 6 measurements are there already"
finish
