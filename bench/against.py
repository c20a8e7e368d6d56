#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `iobench run --against` find a slowdown of 5%, and leave equal options alone, on a real disk?

    bench/against.py IOBENCH FOLDER [--tries 100] [--pairs 5] [--turns 24] [--mib 32]

Makes two sets in FOLDER whose records differ in size by 5%: past the page cache (--direct) a disk
delivers 5% fewer of the larger ones per second, whatever else happens. Each try is one session, in which
a pair consists of several short runs of each that take turns (--turns): a disk drifts from one second to
the next by more than 5%. Prints `claim` lines at the end.
"""
import argparse
import json
import os
import subprocess
import sys


def pack(iobench, folder, count, mean):
    path = os.path.join(folder, f"against-{count}-{mean}")
    if not os.path.isdir(path):
        subprocess.run([iobench, "pack", f"synthetic:count={count},mean={mean}", path,
                        "-f", "recordio", "--shards", "2"], check=True, stdout=subprocess.DEVNULL)
    return path


def sit(iobench, options, one, other):
    """Run one session. Return the comparison and the samples/s ratio expected from the record sizes."""
    done = subprocess.run(
        [iobench, "run", "--data", one, "--direct", "--decode", "none", "--no-crc",
         "--no-calibrate", "--sample-interval", "none", "--runs", str(options.pairs),
         "--turns", str(options.turns), "--against", f"--data '{other}' --label B",
         "--json", "-"], stdout=subprocess.PIPE, check=True)
    document = json.loads(done.stdout)
    size = [job["dataset"]["mean_record_bytes"] for job in document["jobs"]]
    return document["comparisons"][0]["figures"]["samples_per_s"], size[0] / size[1]


def claim(name, percent, goal, holds):
    print(f"claim {name} {percent:.1f} % goal {goal} {'ok' if holds else 'short'}")
    return holds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("iobench")
    parser.add_argument("folder")
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--mib", type=int, default=32, help="of one run")
    options = parser.parse_args()
    count = options.mib * 1048576 // 100000
    sets = {"equal": pack(options.iobench, options.folder, count, 100000)}
    sets["slower"] = pack(options.iobench, options.folder, count, 104300)
    found = {"equal": 0, "slower": 0}
    covered = {"equal": 0, "slower": 0}
    for i in range(options.tries):
        for kind, other in sets.items():
            figure, ratio = sit(options.iobench, options, sets["equal"], other)
            is_slower = figure["change_percent"] < 0 or kind == "equal"
            found[kind] += figure["significant"] and is_slower
            true_percent = 100 * (ratio - 1)
            covered[kind] += (figure["change_low95_percent"] <= true_percent
                              <= figure["change_high95_percent"])
            print(f"{i + 1} {kind} (true {true_percent:+.2f}%): {figure['change_percent']:+.2f}% "
                  f"({figure['change_low95_percent']:+.2f} .. "
                  f"{figure['change_high95_percent']:+.2f}), p {figure['p']:.4f}", flush=True)
    share = {kind: 100 * count / options.tries for kind, count in found.items()}
    good = claim("against_false_alarms_percent", share["equal"], "<=5", share["equal"] <= 5)
    good &= claim("against_five_percent_found", share["slower"], ">=90", share["slower"] >= 90)
    for kind, count in covered.items():
        print(f"the interval of {kind} pairs held the true ratio in {100 * count / options.tries:.0f}%")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
