#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How many emulated GPUs can throttled storage feed? Upper bounds are arithmetic and hold on any
# machine: reads never exceed --limit-rate. Lower bounds need an idle machine and are left to the
# unit tests.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
"$IOBENCH" pack synthetic:count=1200,mean=6000 "$tmp/set" -f recordio >"$tmp/out" 2>&1 || die "no data set"

# 3 MB/s of samples of 6 kB are some 500 samples/s: 5 GPUs of 100 samples/s.
set -- ramp --data "$tmp/set" --decode none -B 4 --duration 1s --runs 1 --precision 10% --memory 1MiB
try 0 "$@" --limit-rate 3MB/s --trainer replay:rate=100 --limit 100% --json "$tmp/a.json"
out "x replay:rate=100"
out "Fed      99% of the batches late by less than 100% of a step of 40.0 ms"
grep -qE " (late|behind)$" "$tmp/out" || fault "no load is too high"
cat >"$tmp/check.py" <<'END'
import json, sys
ramp = json.load(open(sys.argv[1]))["ramp"]
points = [point for point in ramp["points"] if not point["preview"]]
assert 0 < len(points) < len(ramp["points"])
ends = [ramp["load"], ramp["load_that_fails"]]
assert all(any(point["load"] == end for point in points) for end in ends if end), (ends, points)
size = points[0]["record_bytes_per_s"] / points[0]["samples_per_s"]
capacity = 3e6 / size / 100
assert ramp["load"] is None or ramp["load"] < 1.15 * capacity, (ramp["load"], capacity)
assert (ramp["load"] or 0) < ramp["load_that_fails"]
assert ramp["load_low"] <= (ramp["load"] or 0) and ramp["load_high"] >= ramp["load_that_fails"]
assert abs(ramp["step_s"] - 0.04) < 1e-6, ramp["step_s"]
for point in points:
    assert abs(point["offered_samples_per_s"] / point["load"] - 100) < 0.1, point
    assert point["samples_per_s"] < 1.1 * 3e6 / size, point
    in_time = point["stall_p99_percent"] < 100
    assert not point["holds"] or in_time, point
    assert point["holds"] or not in_time or abs(point["samples_per_s"] / point["read_samples_per_s"] - 1) < 1e-6, point
    assert point["samples_per_s"] <= point["read_samples_per_s"] * 1.000001, point
    assert abs(point["stall_p99_percent"] - 100 * point["lateness_p99_s"] / 0.04) < 0.01, point
    assert point["lateness_p50_s"] <= point["lateness_p99_s"] <= point["lateness_max_s"] * 1.02, point
    if point["load"] > 1.5 * capacity:
        assert not point["holds"], point
END
python3 "$tmp/check.py" "$tmp/a.json" >"$tmp/err" 2>&1 || fault "the figures disagree"
# All of the set is one look-ahead window, read before the first batch comes: that is no rate.
try 0 ramp --data "$tmp/set" --decode none -B 4 --duration 1s --runs 1 --precision 10% --bs 32k --from 4 --to 16 \
    --limit-rate 3MB/s --trainer replay:rate=100 --limit 100% --json "$tmp/b.json"
grep -qE " (late|behind)$" "$tmp/out" || fault "no load is too high" # in time, but on a busy machine
cat >"$tmp/ahead.py" <<'END'
import json, sys
ramp = json.load(open(sys.argv[1]))["ramp"]
for point in ramp["points"]:
    assert point["record_bytes_per_s"] < 1.02 * 3e6, point
    assert not point["holds"] or point["offered_samples_per_s"] < 1.02 * point["read_samples_per_s"], point
END
python3 "$tmp/ahead.py" "$tmp/b.json" >"$tmp/err" 2>&1 || fault "$(cat "$tmp/err")"
# The document is sealed by a checksum, like a result.
sed 's/"holds": false/"holds": true/' "$tmp/a.json" >"$tmp/forged.json"
try 1 compare "$tmp/forged.json" "$tmp/forged.json"

# A record that is skipped degrades the answer, as it does a run.
"$IOBENCH" pack synthetic:count=200,mean=6000 "$tmp/hurt" -f shards --shards 1 >"$tmp/out" 2>&1 || die "no other data set"
shard=$(find "$tmp/hurt" -name "train-*" ! -name "*.idx")
printf 'damage' | dd of="$shard" bs=1 seek=$(($(wc -c <"$shard") / 2)) conv=notrunc status=none
try 1 "$@" --data "$tmp/hurt" --decode checksum --on-error skip -B 1 --from 100 --to 100 \
    --trainer replay:rate=10 --limit 1000% --json -
out '"degraded_reason": "1 record was skipped"'
out '"synthetic": true'
# One that fails the run leaves no answer: what held before it is none.
try 1 "$@" --data "$tmp/hurt" --decode checksum --shuffle none -B 1 --from 1 --to 1000 \
    --trainer replay:rate=10 --limit 1000% --json "$tmp/none.json"
out ", synthetic"
out "iobench ramp: a run failed: no answer"
no_out "fed (interval"
no_out "are fed"
[ ! -e "$tmp/none.json" ] || fault "a document without an answer"

# So does a set that is not to be opened again; what was measured of it is told.
cp -r "$tmp/set" "$tmp/gone"
try 1 "$@" --data "$tmp/gone" --from 1 --to 2 --trainer replay:rate=1000 --limit 1000% \
    --drop-caches --server-drop-cmd "mv '$tmp/gone/.iobench-set' '$tmp/gone/.iobench-unfinished'"
out "iobench ramp: a run failed: no answer"
out "Data     $tmp/gone: recordio, 1,200 samples, synthetic"

try 1 ramp --data "$tmp/set" -B 400 --decode none --trainer replay:rate=1e6
err "are too few"
empty out

# Interrupted: it ends at once and reports that.
"$IOBENCH" "$@" --limit-rate 20kB/s --trainer replay:rate=1 >"$tmp/out" 2>"$tmp/err" &
pid=$!
tried="interrupted"
for _ in $(seq 600); do
    [ "$(find "/proc/$pid/task" -maxdepth 1 2>/dev/null | wc -l)" -gt 3 ] && break # it reads
    sleep 0.1
done
kill -INT $pid
wait $pid && status=0 || status=$?
[ "$status" = 1 ] || fault "exit status $status after SIGINT"
finish
