#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Workloads of MLPerf Storage: their settings, their report, and data of their shape.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

# 40 samples of one size, as plain files; the same bytes again.
try 0 pack synthetic:count=40,workload=retinanet-b200 "$tmp/set" -f files
try 0 pack synthetic:count=40,workload=retinanet-b200 "$tmp/again" -f files
[ "$(find "$tmp/set" -type f -name '*.jpg' -size 322957c | wc -l)" = 40 ] || fault "not 40 samples of 322,957 bytes"
(cd "$tmp/set" && find . -name '*.jpg' -exec cmp {} "$tmp/again/{}" \;) >"$tmp/err"
empty err

# It sets format, batch, steps, epochs; the command line overrides.
status=0
"$IOBENCH" run --data "$tmp/set" --workload retinanet-b200 --runs 1 --epochs 1 --no-calibrate --json "$tmp/r.json" \
    >"$tmp/out" 2>"$tmp/err" || status=$? # 1: a machine without a free processor lets steps end late
tried="run --workload"
[ $status -le 1 ] || fault "exit status $status"
out "decode none on 8 threads, batches of 24, trainer replay:rate=24,scale=0.04755"
out "emulated B200 of 505 samples/s"
out "would not be a submission: dataset 12.32 MiB <"
out "1 of 6 runs; 1 of 8 epochs"
no_out "ResNet-50"
grep -q '"mlperf_result": false' "$tmp/r.json" || fault "JSON does not deny"
grep -q '"meets_checked_rules": false' "$tmp/r.json" || fault "JSON finds it good"

# A job file may name a workload.
printf '[job]\ndata=%s\nworkload=retinanet-b200\nruns=1\nepochs=1\ncalibrate=no\ndry-run\n' "$tmp/set" >"$tmp/job.ini"
try 0 run "$tmp/job.ini"
out "batches of 24"

# A user's own workload is a file.
try 0 list profiles --json
python3 - "$tmp/out" "$tmp/own.ini" <<'END' || fault "list --json has no workload"
import json, sys
rows = [row for row in json.load(open(sys.argv[1]))["profiles"] if row["name"] == "retinanet-b200"]
with open(sys.argv[2], "w") as file:
    for section, figures in rows[0]["sections"].items():
        print(f"[{section}]", *(f"{key}={value}" for key, value in figures.items()), sep="\n", file=file)
END
sed 's/^title=.*/title=My own/' "$tmp/own.ini" >"$tmp/mine.ini"
try 0 run --data "$tmp/set" --workload "$tmp/mine.ini" --runs 1 --epochs 1 --no-calibrate --trainer none
out "My own: would not be"

try 0 list profiles
out "unet3d-b200"
try 1 pack synthetic:count=4,workload=unet4d "$tmp/none"
err "unknown workload 'unet4d'"
[ ! -e "$tmp/none" ] || [ -z "$(ls "$tmp/none")" ] || fault "something was written"

# One load at its step time: 24 samples every 47.55 ms.
try 0 ramp --data "$tmp/set" --workload retinanet-b200 --batch-size 2 --from 1 --to 1 --runs 1 --limit 1000%
out "step of 3.96 ms"
finish
