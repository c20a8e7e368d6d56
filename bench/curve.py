#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the measured service curve of a storage predict what `iobench run` reads from it?

    bench/curve.py IOBENCH FOLDER [--megabytes 1024] [--time 200ms] [--runs 3] [--markdown]

Measures the curve of a file in FOLDER (iobench size --measure), then reads data sets of other record sizes at
depths between the measured ones, one read a record, bypassing the page cache, and compares with what
`iobench size --simulate` makes of the curve. `claim` lines come last. It needs a quiet machine and storage.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from predict import claim, profile_text

SIZES, DEPTHS = "4k,16k,64k,256k,1m", "1,4,16,64"
RECORDS, READ_DEPTHS = (24000, 120000, 400000), (2, 8, 32)


def call(iobench, *arguments):
    done = subprocess.run([iobench, *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def data(options, mean):
    path = os.path.join(options.folder, f"curve-{mean}")
    if not os.path.exists(path):
        subprocess.run([options.iobench, "pack", f"synthetic:count={options.records_bytes // mean},mean={mean}", path,
                        "-f", "recordio", "--shards", "1"], check=True, stdout=subprocess.DEVNULL)
    return path


def measure(options, path, depth):
    job = call(options.iobench, "run", "--data", path, "--decode", "none", "--direct", "--window", "1",
               "--iodepth", str(depth), "--runs", str(options.runs), "--epochs", "1", "--no-calibrate",
               "--sample-interval", "none", "--json", "-")["jobs"][0]
    summary = job["summary"]
    return summary["samples_per_s"], summary["record_bytes"] / summary["samples"], \
        summary["request_bytes"] / summary["requests"], summary["request_bytes"] / summary["record_bytes"], \
        summary["samples"] / options.runs


def predict(options, curve, figures, depth):
    _, record, read, amplification, samples = figures
    own = os.path.join(options.folder, "curve-run.ini")
    with open(own, "w", encoding="utf-8") as file:
        file.write(profile_text({
            "gpu": {"samples-per-s": 1e9},
            "network": {"batch": 256, "gradient-bytes": 0},
            "data": {"sample-bytes": record, "samples": samples, "read-bytes": read, "amplification": amplification},
            "cpu": {"decode-core-s": 0, "load-core-s": 0},
            "node": {"gpus": 1, "cache-bytes": 0, "depth": depth, "storage-port-bytes-per-s": 0,
                     "record-bytes": 128 << 20},
            "job": {"epochs": 1}}, "bench/curve.py"))
    return call(options.iobench, "size", "--simulate", "--gpus", "1", "--storage", curve, "--profile", own,
                "--json")["cases"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("iobench")
    parser.add_argument("folder")
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--time", default="200ms")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.records_bytes = options.megabytes << 20
    paths = [data(options, mean) for mean in RECORDS]
    curve = os.path.join(options.folder, "curve.ini")
    subprocess.run([options.iobench, "size", "--measure", paths[-1], "--read-sizes", SIZES, "--depths", DEPTHS,
                    "--measure-time", options.time, "--save", curve], check=True, stdout=sys.stderr)
    errors, inside = [], 0
    for path in paths:
        for depth in READ_DEPTHS:
            figures = measure(options, path, depth)
            case = predict(options, curve, figures, depth)
            interval, rate, predicted = case["samples_per_s"], figures[0], case["stated_samples_per_s"]
            errors.append(100 * abs(predicted / rate - 1))
            inside += interval["low"] <= rate <= interval["high"]
            columns = [f"{figures[2] / 1000:.0f} kB", f"{depth}", f"{rate:.0f}", f"{predicted:.0f}",
                       f"{interval['low']:.0f} .. {interval['high']:.0f}", f"{100 * (predicted / rate - 1):+.1f}%"]
            print("| " + " | ".join(columns) + " |" if options.markdown else "  ".join(columns), flush=True)
    print(f"{inside} of {len(errors)} measurements are inside the predicted interval")
    good = claim("curve-median-error", statistics.median(errors), 5)
    good &= claim("curve-worst-error", max(errors), 15)
    sys.exit(not good)


if __name__ == "__main__":
    main()
