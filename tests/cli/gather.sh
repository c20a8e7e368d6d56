#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `run --start-at` starts runs together, and `gather` joins their results, or says why they do not
# belong together.
# shellcheck disable=SC2154 # expect sets out
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

expect 0 "$IOBENCH" pack synthetic:count=64,classes=3,mean=6k,seed=5 set
RUN="run --data set --memory 16m -t 1 --calibrate=no --decode checksum --runs 1 --limit-rate 200k --on-error skip"
# One record is damaged: one of the two ranks skips it.
shard=$(find set -name "train-*" ! -name "*.idx" | sort | head -n 1)
cp "$shard" whole
printf 'damage' | dd of="$shard" bs=1 seek=$(($(wc -c <"$shard") / 2)) conv=notrunc status=none

# Two ranks, ready at different times, start at one time of day, whatever the load: a start that
# comes too late is refused, and then they try again, later.
# shellcheck disable=SC2086 # words without blanks
for delay in 5 30 120; do
    rm -f a.json b.json
    at=@$(($(date +%s) + delay))
    "$IOBENCH" $RUN --ranks 2 --rank 0 --start-at "$at" --json a.json >a.txt 2>&1 &
    first=$!
    "$IOBENCH" $RUN --ranks 2 --rank 1 --start-at "$at" --json b.json --label other >b.txt 2>&1 || : # 1: skipped
    wait $first || :
    [ ! -s a.json ] || [ ! -s b.json ] || break
    cat a.txt b.txt | grep -q "too late: choose a later time" || die "no reason: $(cat a.txt b.txt)"
done
if [ ! -s a.json ] || [ ! -s b.json ]; then die "never in time: $(cat a.txt b.txt)"; fi
started() { # FILE: when its epoch began
    python3 -c 'import json, sys
series = json.load(open(sys.argv[1]))["jobs"][0]["series"]
print(series["start_unix_s"] + next(p["from_s"] for p in series["phases"] if p["phase"] == "epoch"))' "$1"
}
for file in a.json b.json; do
    python3 -c 'import sys; sys.exit(float(sys.argv[1]) < float(sys.argv[2][1:]))' "$(started $file)" "$at" ||
        die "$file started at $(started $file), before $at"
done

# A degraded result is not washed clean by the other, which is the first.
set -- a.json b.json
if grep -q '"degraded": true' a.json; then set -- b.json a.json; fi
expect 0 "$IOBENCH" gather "$1" "$2" -o all.json
says "DEGRADED" "$2: samples were skipped" "2 results of 1 host" "all were at work in" "looser than one job" "limit"
python3 - <<'END' || die "all.json is not the sum of both"
import json
both = [json.load(open(name))["jobs"][0] for name in ("a.json", "b.json")]
document = json.load(open("all.json"))
job, gathered = document["jobs"][0], document["gathered"]
spans = [(run["start_unix_s"], run["end_unix_s"]) for run in gathered["runs"]]
time = max(end for _, end in spans) - min(start for start, _ in spans)
assert job["degraded"] and "samples were skipped" in job["degraded_reason"], job["degraded_reason"]
assert job["summary"]["samples"] == sum(one["summary"]["samples"] for one in both) == 63, job["summary"]
assert abs(job["summary"]["samples_per_s"] * time / 63 - 1) < 1e-4, (time, job["summary"])
assert job["engine"]["ranks"] == 2 and job["engine"]["nodes"] == 1, job["engine"]
assert 0 < gathered["overlap_percent"] <= 100, gathered
# The conditions of the runs are those of the whole.
for key in "cache_before", "limit":
    words = {one["summary"][key] for one in both}
    assert job["summary"][key] == (words.pop() if len(words) == 1 else "mixed"), (key, job["summary"])
assert job["headline"].startswith("DEGRADED, ") and job["summary"]["cache_before"] in job["headline"], job["headline"]
assert job["dataset"]["synthetic"] and job["dataset"]["identity"] == both[0]["dataset"]["identity"], job["dataset"]
assert sorted(run["degraded_reason"] is None for run in gathered["runs"]) == [False, True], gathered
assert (gathered["doubt"] is None) == (gathered["overlap_percent"] >= 90), gathered
END
says "Cache "
expect 0 "$IOBENCH" size all.json --gpus 8 --gpu h200
expect 1 "$IOBENCH" compare a.json all.json
says "B is DEGRADED: $2: samples were skipped"

# What does not belong together.
mv whole "$shard"
cp a.json copy.json
expect 1 "$IOBENCH" gather a.json copy.json
says "copy.json: the same result as a.json; it cannot count twice"
# shellcheck disable=SC2086 # words without blanks
{
    expect 1 "$IOBENCH" $RUN --start-at 2026-01-31T12:00:00Z
    says "too late: choose a later time"

    expect 2 "$IOBENCH" $RUN --start-at @"$(date +%s)000"
    says "days from now"

    # A signal ends the wait.
    "$IOBENCH" $RUN --start-at @$(($(date +%s) + 3600)) >wait.txt 2>&1 &
    job=$!
    # Once it, not the shell before it, handles SIGTERM: bit 14 of its mask.
    until grep -q '^iobench$' /proc/$job/comm && grep -q 'SigCgt:.*[4-7c-f]...$' /proc/$job/status; do
        kill -0 $job || die "ended by itself: $(cat wait.txt)"
        sleep 0.05
    done
    kill -TERM $job
    wait $job && die "an interrupted wait succeeded"
    grep -q interrupted wait.txt || die "not interrupted: $(cat wait.txt)"
}
expect 2 "$IOBENCH" gather a.json b.json -o a.json
echo "runs started by hand are joined"
