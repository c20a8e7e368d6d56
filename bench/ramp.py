#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `iobench ramp` find what arithmetic says, and the same each time?

    bench/ramp.py [--iobench build/iobench] [--folder DIR] [--repeats 3] [--rates 10,40]

A set of 110 kB samples, throttled by --limit-rate: R bytes/s over the mean record over the samples/s of a GPU is
the number of GPUs. Prints the answers, their error and their spread, and lines `claim`: both within 2%.
The six ramps take about 6 minutes on an idle machine.
"""
import argparse
import json
import os
import shutil
import subprocess


def ramp(options, rate, gpu):
    path = os.path.join(options.folder, "ramp.json")
    subprocess.run([options.iobench, "ramp", "--data", os.path.join(options.folder, "set"), "--decode", "none",
                    "--batch-size", "4", "--memory", "16MiB", "--limit-rate", f"{rate}MB/s", "--trainer",
                    f"replay:rate={gpu}", "--duration", f"{options.seconds}s", "--limit", "10%", "--from", "4",
                    "--json", path],
                   check=True, stdout=subprocess.DEVNULL)
    with open(path, encoding="utf-8") as file:
        found = json.load(file)["ramp"]
    point = max(found["points"], key=lambda row: row["batches"])
    size = point["record_bytes_per_s"] / point["samples_per_s"]
    return found["load"], found["load_that_fails"], rate * 1e6 / size / gpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="ramp.tmp")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rates", default="10,40")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    shutil.rmtree(os.path.join(options.folder, "set"), ignore_errors=True)
    subprocess.run([options.iobench, "pack", "synthetic:count=6000", os.path.join(options.folder, "set"),
                    "-f", "recordio"], check=True, stdout=subprocess.DEVNULL)
    worst = spread = 0
    for rate in options.rates.split(","):
        answers = []
        for _ in range(options.repeats):
            held, failed, expected = ramp(options, float(rate), 10)
            middle = (held * failed) ** 0.5
            answers.append(middle)
            worst = max(worst, abs(middle / expected - 1))
            print(f"{rate:>6} MB/s: {held:.4g} .. {failed:.4g} GPUs, arithmetic {expected:.4g}: "
                  f"{100 * (middle / expected - 1):+.2f}%", flush=True)
        spread = max(spread, max(answers) / min(answers) - 1)
    shutil.rmtree(options.folder)
    for name, figure in (("error", 100 * worst), ("spread", 100 * spread)):
        print(f"claim ramp_{name} {figure:.2f} % goal <=2 {'ok' if figure <= 2 else 'short'}")


if __name__ == "__main__":
    main()
