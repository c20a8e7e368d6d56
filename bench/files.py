#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon does a set of very many files start?

    bench/files.py [--iobench build/iobench] [--folder DIR] [--files 100000] [--rounds 5]

Makes sparse files of 110 kB, a thousand a class, as many as --files. The index is built from warm dentries and
inodes, in files per second of the run's phase `index`; then a run with that index is timed from exec to exit, with
256 samples that nothing reads (null reader). That includes checking all files against the index, surveying their
residency, and the first batch. 1,281,167 files have ImageNet's shape."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import time


def make(folder, files):
    for number in range(files):
        path = f"{folder}/{number // 1000:04}/{number % 1000:04}.jpg"
        if number % 1000 == 0:
            os.mkdir(os.path.dirname(path))
        with open(path, "wb") as file:
            file.truncate(110000)


def run(options, data):
    """Return the seconds of the whole run and those of its phase `index`."""
    result = os.path.join(options.folder, "result.json")
    start = time.monotonic()
    done = subprocess.run([options.iobench, "run", "--data", data, "--format", "files", "--reader", "null", "--decode",
                           "none", "--trainer", "none", "--runs", "1", "--calibrate=no", "--limit-samples", "256",
                           "--json=" + result], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)
    seconds = time.monotonic() - start
    if done.returncode:
        raise SystemExit("files: " + done.stderr.strip())
    with open(result, encoding="utf-8") as file:
        phases = json.load(file)["jobs"][0]["series"]["phases"]
    os.unlink(result)
    return seconds, next((phase["to_s"] - phase["from_s"] for phase in phases if phase["phase"] == "index"), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="/tmp/iobench-files")
    parser.add_argument("--files", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    data = os.path.join(options.folder, "set")
    os.makedirs(data)
    try:
        make(data, options.files)
        rates, starts = [], []
        for number in range(options.rounds):
            if os.path.exists(data + "/.iobench-index"):
                os.unlink(data + "/.iobench-index")
            index = run(options, data)[1]
            start = run(options, data)[0]
            rates.append(options.files / index)
            starts.append(start)
            print(f"round {number + 1}: index {index:.3f} s, {rates[-1]:.0f} files/s; start with it {start:.3f} s",
                  flush=True)
    finally:
        shutil.rmtree(data)
    rate, start = statistics.median(rates), statistics.median(starts)
    print(f"claim files_index {rate:.0f} files/s goal >=100000 {'ok' if rate >= 100000 else 'short'}")
    if options.files <= 100000:
        print(f"claim files_start {start:.3f} s goal <=1 {'ok' if start <= 1 else 'short'}")


if __name__ == "__main__":
    main()
