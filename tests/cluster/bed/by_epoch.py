#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""by_epoch.py RESULT.json: provenance of bytes by node and epoch, as `iobench run` or
`iobench train` reports, one row per node and epoch, in MB, to standard output."""
import csv
import json
import sys

KEYS = ("read", "from_page_cache", "from_fabric", "fabric_receive", "fabric_send", "fabric_excess",
        "expected_gradient")


def main(words):
    with open(words[0]) as file:
        document = json.load(file)
    series = document["jobs"][0]["series"]
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["node", "epoch", *(f"{key}_MB" for key in KEYS)])
    for number, node in enumerate(series.get("nodes") or [series], 1):
        for phase in node["phases"]:
            if phase["phase"] == "epoch":
                values = (phase["origin"][f"{key}_bytes"] for key in KEYS)
                out.writerow([f"node{number}", phase["epoch"],
                              *("" if value is None else round(value / 1e6, 2) for value in values)])


if __name__ == "__main__":
    main(sys.argv[1:])
