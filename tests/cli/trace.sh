#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --trace: every sample of the first run was fetched, read, decoded and batched, in this order in time; as
# docs/trace.md says.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
command -v python3 >/dev/null || skip "no python3"
make_set recordio 240
cd "$tmp" || die "no folder"

cat >check.py <<'END_OF_CHECK'
import collections, json, sys

trace = json.load(open(sys.argv[1]))
epochs = json.load(open(sys.argv[2]))["jobs"][0]["runs"][0]["epochs"]
assert list(trace) == ["otherData", "displayTimeUnit", "traceEvents"], list(trace)
assert trace["otherData"]["lost"] == 0 and trace["displayTimeUnit"] == "ms"
spans, open_spans, threads = collections.defaultdict(list), {}, {}
for event in trace["traceEvents"]:
    if event["ph"] == "M":
        threads[event.get("tid")] = event["args"]["name"]
    elif event["ph"] == "b":
        open_spans[event["id"]] = event
    elif event["ph"] == "e":
        begin = open_spans.pop(event["id"])
        spans[event["name"]].append((begin["ts"], event["ts"], begin["args"], event["tid"]))
    else:
        spans[event["name"]].append((event["ts"], event["ts"] + event["dur"], event["args"], event["tid"]))
assert not open_spans
for name, all_of_it in spans.items():
    assert all(0 <= start <= end for start, end, _, _ in all_of_it), name
    wanted = {"decode": tuple(sys.argv[3].split(",")), "batch": "trainer", "step": "trainer"}.get(name, "loader")
    assert all(threads[thread].startswith(wanted) for _, _, _, thread in all_of_it), name

def by(name, *keys):
    found = {tuple(figures[key] for key in keys): (start, end, figures) for start, end, figures, _ in spans[name]}
    assert len(found) == len(spans[name]), f"{name}: one twice"
    return found

# dur and ts are written with ns, but added up here as floating point.
little = 1e-4
fetches, decodes = by("fetch", "epoch", "record"), by("decode", "epoch", "record")
batches, steps = by("batch", "batch"), by("step", "batch")
samples = sum(epoch["samples"] for epoch in epochs)
assert len(fetches) == len(decodes) == samples, (len(fetches), len(decodes), samples)
assert len(batches) == len(steps) == sum(epoch["batches"] for epoch in epochs)
assert len(spans["read"]) == sum(epoch["requests"] for epoch in epochs)
for sample, (start, end, fetch) in fetches.items():
    decoded, done, decode = decodes[sample]
    reads = [read for read in spans["read"]
             if read[2]["shard"] == fetch["shard"] and read[2]["epoch"] == fetch["epoch"] and end <= read[0] + little and read[1] <= decoded + little
             and read[2]["offset"] <= fetch["offset"] < read[2]["offset"] + read[2]["result"]]
    assert len(reads) == 1, f"{sample}: {len(reads)} reads between {end} and {decoded}"
    ready, taken, batch = batches[(decode["batch"],)]
    assert done <= ready + little, f"{sample}: decoded after its batch was ready"
    assert batch["epoch"] == fetch["epoch"]
    assert taken <= steps[(decode["batch"],)][0] + little
rows = collections.Counter(key["batch"] for _, _, key in decodes.values())
for (number,), (_, _, batch) in batches.items():
    assert rows[number] == batch["samples"], f"batch {number}"
END_OF_CHECK

# checked THREADS ARGUMENTS...: the threads that take records.
checked() {
    threads=$1
    shift
    try 0 run --data recordio --no-calibrate -B 16 --trace trace.json --json result.json "$@"
    python3 check.py trace.json result.json "$threads" 2>err || fault "$(tail -n 1 err)"
}
checked decode --runs 2 --epochs 2
checked decode --runs 1 --epochs 3 --overlap-epochs --shuffle buffer:40 --io-threads 2 --decode-threads 3
checked decode --runs 1 --epochs 1 --reader pread --window 1
checked loader,decode --runs 1 --decode none --no-crc

# Rings are bounded: what is lost is said, and the rest is kept.
try 0 pack synthetic:count=3000,mean=4000 many -f recordio
try 0 run --data many --no-calibrate --runs 1 --epochs 12 --decode none --no-crc --trace trace.json
out "spans are lost"
python3 - trace.json <<'END_OF_CHECK' || fault "the rings"
import json, sys
trace = json.load(open(sys.argv[1]))
events = [event for event in trace["traceEvents"] if event["ph"] in "bX" and event["tid"] == 1]
assert len(events) == 1 << 15 and trace["otherData"]["lost"] > 0
fetches = [event["args"]["epoch"] for event in events if event["name"] == "fetch"]
assert fetches.count(1) < 3000 == fetches.count(12), "not the last ones are kept"
END_OF_CHECK

# A failed run has one, too; an output replaces only its kind.
try 1 run --data recordio --no-calibrate --runs 1 --limit-samples 100 --require-rate 1PB/s --trace trace.json
echo '{"otherData": {"precious": 1}}' >other.json
try 2 run --data recordio --no-calibrate --runs 1 --trace other.json
err "not replaced"
try 0 run --data recordio --no-calibrate --runs 1 --trace -
python3 -m json.tool "$tmp/out" >/dev/null || fault "standard output has more than the trace"
finish
