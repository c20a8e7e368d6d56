#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a shuffle buffer cost throughput? Cached records that are copied out of nothing but the page cache.

    bench/buffer.py [--iobench build/iobench] [--folder DIR] [--images 3000] [--rounds 9]

Images of 110 kB in one RecordIO file, all in the page cache, not decoded: with `--shuffle buffer:600` records leave
memory in another order than they were read in, with `none` in the same. Both take turns, four epochs each; the figure
is the mean ratio of the pairs."""
import argparse
import json
import os
import shutil
import subprocess


def iobench(options, *arguments):
    done = subprocess.run([options.iobench, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode:
        raise SystemExit("buffer: " + done.stderr.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="/tmp/iobench-buffer")
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    data, result = os.path.join(options.folder, "set"), os.path.join(options.folder, "buffer.json")
    os.makedirs(options.folder, exist_ok=True)
    try:
        iobench(options, "pack", f"synthetic:count={options.images},mean=110k,seed=3", data, "--format", "recordio")
        iobench(options, "run", "--data", data, "--decode", "none", "--no-calibrate", "--epochs", "4", "--runs",
                str(options.rounds), "--shuffle", "none", "--against", "--shuffle buffer:600", "--json=" + result)
        with open(result, encoding="utf-8") as file:
            found = json.load(file)["comparisons"][0]["figures"]["samples_per_s"]
    finally:
        shutil.rmtree(data, ignore_errors=True)
        if os.path.exists(result):
            os.unlink(result)
    ratio, low, high = (1 + found[name] / 100
                        for name in ("change_percent", "change_low95_percent", "change_high95_percent"))
    print(f"none {found['a_median']:.0f} samples/s, buffer:600 {found['b_median']:.0f}")
    print(f"claim buffer_over_none {ratio:.3f} x ({low:.2f} .. {high:.2f}) goal >=0.9 {'ok' if ratio >= 0.9 else 'short'}")


if __name__ == "__main__":
    main()
