#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print each job of a result: python3 docs/examples/result.py RESULT.json"""
import json
import sys

document = json.load(open(sys.argv[1]))
if document["schema"] != "iobench-result" or document["schema_version"] != 2:
    sys.exit(f"{sys.argv[1]}: not a result of this version")
for number, job in enumerate(document["jobs"], 1):
    summary = job["summary"]
    print(f"{job['label'] or number}: {'valid' if job['valid'] else job['invalid_reason']}, "
          f"{summary['cache_before']}, limit {summary['limit']}")
    if summary["samples_per_s"] is None:  # unmeasured values are null, never 0
        continue
    print(f"  {summary['samples_per_s']:.0f} samples/s", end="")
    if summary["samples_per_s_low95"] is not None:
        print(f", 95% interval {summary['samples_per_s_low95']:.0f} .. {summary['samples_per_s_high95']:.0f}", end="")
    print()
    for run in job["runs"]:
        for epoch in run["epochs"]:
            print(f"  run {run['run']} epoch {epoch['epoch']}: {epoch['samples']} samples in "
                  f"{epoch['wall_s']:.3f} s, {100 * epoch['wait_s'] / epoch['wall_s']:.0f}% waiting for data")
