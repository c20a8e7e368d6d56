#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well does `iobench size --simulate` predict what `iobench run` measures?

    bench/predict.py IOBENCH FOLDER [--count 24] [--seed 1] [--samples 6000] [--runs 3] [--markdown]

Draws configurations from a seed before anything is measured: formats, shuffles, storage rates
(--limit-rate), decoding, decode threads, GPUs (replay), memory, batches, long and short epochs, two
ranks if mpirun is there, and a page cache smaller than the data (--memory-limit) where the rate is limited. Then measures the machine once (decoding on one and on all cores, reading from the
page cache), predicts each configuration from that alone, runs it, and prints the errors. A prediction knows
the options of a run and the mean record size, nothing that was measured in it. `claim` lines come last.
"""
import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys

FORMATS = ("recordio", "tfrecord", "tar", "files", "lmdb")
SHUFFLES = ("epoch", "none", "tfdata:buffer=500")
SAMPLE_BYTES = 60000
LIMITED_MEMORY_MIB = 80  # holds the largest shuffle, beside little of the data


def draw_configurations(count, seed, samples, has_mpi):
    rng, more = random.Random(seed), random.Random(seed + 1000)
    rows = []
    for number in range(count):
        decode = rng.random() < 0.6
        ranks = rng.choice([1, 1, 1, 2]) if has_mpi else 1
        rows.append({
            "format": FORMATS[number % len(FORMATS)],
            "shuffle": rng.choice(SHUFFLES),
            "rate_mb": rng.choice([None, None, rng.uniform(15, 60), rng.uniform(60, 250)]),
            "decode": "jpeg" if decode else "none",
            "threads": rng.choice([1, 2, 4]),
            "gpu": rng.choice([None, rng.uniform(200, 1200), rng.uniform(1200, 4000)]),
            "batch": rng.choice([16, 64, 256]),
            "prefetch": rng.choice([1, 2, 8]),
            "window": rng.choice([1, 64, 256]),
            "memory_mib": rng.choice([128, 512]),
            "epochs": rng.choice([1, 2, 3]),
            "samples": rng.choice([samples // 5, samples]) if ranks == 1 else samples,
            "ranks": ranks,
            "has_memory_limit": more.random() < 0.5,
        })
        if limits_memory(rows[-1]):
            rows[-1]["memory_mib"] = LIMITED_MEMORY_MIB
    return rows


class Machine:
    """What is measured once."""

    def __init__(self, options):
        self.options = options
        self.sets = {}
        self.spread = 0  # the largest of the calibration
        self.cores = len(os.sched_getaffinity(0))

    def call(self, arguments, ranks=1):
        launch = []
        if ranks > 1:
            launch = ["mpirun", "--oversubscribe", "-n", str(ranks)]
            if os.geteuid() == 0:
                launch.insert(1, "--allow-run-as-root")
        done = subprocess.run(launch + [self.options.iobench, "run", *arguments, "--json", "-",
                                        "--no-calibrate", "--sample-interval", "none"],
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["jobs"][0]

    def data(self, name):
        if name not in self.sets:
            path = os.path.join(self.options.folder, f"predict-{name}-{self.options.samples}")
            if not os.path.exists(path):
                subprocess.run([self.options.iobench, "pack",
                                f"synthetic:count={self.options.samples},mean={SAMPLE_BYTES}", path, "-f",
                                name, *(["--shards", "4"] if name not in ("lmdb", "files") else [])],
                               check=True, stdout=subprocess.DEVNULL)
            plan = self.call(["--data", path, "--decode", "none", "--runs", "1", "--epochs", "1"])
            self.sets[name] = path, plan["dataset"]["mean_record_bytes"]
        return self.sets[name]

    def rate(self, name, *arguments):
        path, _ = self.data(name)
        job = self.call(["--data", path, "--runs", "5", "--epochs", "1", "--batch-size", "64",
                         *arguments])
        summary = job["summary"]
        rate, low, high = (summary["samples_per_s" + suffix] for suffix in ("", "_low95", "_high95"))
        self.spread = max(self.spread, high / rate - 1, 1 - low / rate)
        return rate

    def calibrate(self):
        """Decoding does not depend on the format; reading from memory does."""
        self.load_s = {name: 1 / self.rate(name, "--decode", "none", "--decode-threads", "1")
                       for name in FORMATS}
        one = self.rate("recordio", "--decode-threads", "1")
        most = self.rate("recordio", "--decode-threads", str(self.cores))
        self.decode_s = 1 / one
        self.cores_used = most * (self.decode_s + self.load_s["recordio"])
        print(f"one core decodes {one:.0f} samples/s, {self.cores} cores {most:.0f}; from memory "
              + ", ".join(f"{name} {1 / s:.0f}" for name, s in self.load_s.items()) + " samples/s")


def profile_text(sections, source):
    lines = []
    for section, figures in sections.items():
        lines += [f"[{section}]", f"source={source}"]
        lines += [f"{key}={value}" for key, value in figures.items()]
    return "\n".join(lines) + "\n"


def uncertain(value, machine):
    return f"{value} +-{100 * machine.spread:.3g}%" if machine.spread > 0 else value


def profile_of(machine, row):
    _, record = machine.data(row["format"])
    decodes = row["decode"] != "none"
    buffer = int(row["shuffle"].split("=")[1]) if "=" in row["shuffle"] else 0
    window = row["window"] if row["shuffle"] == "epoch" else 0
    rate = row["rate_mb"] * 1e6 if row["rate_mb"] else 1e12
    sections = {
        "gpu": {"samples-per-s": row["gpu"] or 1e9},
        "network": {"batch": row["batch"], "gradient-bytes": 0},
        "data": {"sample-bytes": record, "samples": row["samples"],
                 "read-bytes": record, "amplification": 1},
        "cpu": {"decode-core-s": uncertain(machine.decode_s, machine) if decodes else 0,
                "load-core-s": uncertain(machine.load_s[row["format"]], machine)},
        "node": {"gpus": 1, "cores": machine.cores_used / row["ranks"],
                 "decode-threads": row["threads"], "prefetch": row["prefetch"],
                 "record-bytes": row["memory_mib"] * 1048576, "cache-bytes": 0,
                 "storage-port-bytes-per-s": 0, "fabric-port-bytes-per-s": 0},
        "storage": {"scope": "node", "read-bytes-per-s": rate, "read-iops": 0, "latency-s": 0,
                    "latency-cv": 0, "client-bytes-per-s": 0},
        "job": {"epochs": row["epochs"], "buffer-samples": buffer, "window-samples": window,
                "undrawn-samples": machine.options.samples - row["samples"]},
    }
    return profile_text(sections, "bench/predict.py")


def predict(machine, row):
    path = os.path.join(machine.options.folder, "predict.ini")
    with open(path, "w", encoding="utf-8") as file:
        file.write(profile_of(machine, row))
    done = subprocess.run([machine.options.iobench, "size", "--simulate", "--gpus", str(row["ranks"]),
                           "--profile", path, "--json"],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["cases"][0]


def measure(machine, row):
    path, _ = machine.data(row["format"])
    arguments = ["--data", path, "--shuffle", row["shuffle"], "--decode", row["decode"],
                 "--decode-threads", str(row["threads"]), "--batch-size", str(row["batch"]),
                 "--prefetch", str(row["prefetch"]), "--window", str(row["window"]),
                 "--memory", f"{row['memory_mib']}MiB", "--epochs", str(row["epochs"]),
                 "--runs", str(machine.options.runs)]
    if row["samples"] < machine.options.samples:
        arguments += ["--limit-samples", str(row["samples"])]
    if row["rate_mb"]:
        arguments += ["--limit-rate", f"{int(row['rate_mb'] * 1e6)}B/s"]
    if limits_memory(row):
        arguments += ["--memory-limit", f"{memory_limit_mib(row)}MiB"]
    if row["gpu"]:
        arguments += ["--trainer", f"replay:rate={row['gpu']:.1f}"]
    # What is not throttled comes from the page cache.
    machine.call(["--data", path, "--decode", "none", "--runs", "1"])
    job = machine.call(arguments, row["ranks"])
    return job["summary"]["samples_per_s"], job["summary"]["limit"]


def memory_limit_mib(row):
    """Batches, record memory and as much in the page cache fill three quarters."""
    batches = row["batch"] * (row["prefetch"] + 1) * 224 * 224 * 3 if row["decode"] != "none" else 0
    return (batches // 1048576 + 2 * row["memory_mib"]) * 4 // 3 + 16


def limits_memory(row):
    """The disk itself, faster than the limited rate, is not calibrated. A larger limit would hold the set."""
    return (row["has_memory_limit"] and row["rate_mb"] and row["ranks"] == 1 and
            memory_limit_mib({**row, "memory_mib": LIMITED_MEMORY_MIB}) < row["samples"] * SAMPLE_BYTES // 1048576)


def describe(row):
    parts = [row["format"], row["shuffle"], f"{row['rate_mb']:.0f} MB/s" if row["rate_mb"] else "memory",
             f"{row['decode']} x{row['threads']}", f"GPU {row['gpu']:.0f}/s" if row["gpu"] else "no GPU",
             f"batch {row['batch']}+{row['prefetch']}", f"window {row['window']}",
             f"{row['epochs']} x {row['samples']}"]
    return (parts + [f"{row['ranks']} ranks"] * (row["ranks"] > 1) +
            ["memory limited"] * bool(limits_memory(row)))


def claim(name, percent, goal):
    holds = percent <= goal
    print(f"claim {name} {percent:.1f} % goal <={goal} {'ok' if holds else 'short'}")
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("iobench")
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=6000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rows = draw_configurations(options.count, options.seed, options.samples,
                               shutil.which("mpirun") is not None)
    machine = Machine(options)
    machine.calibrate()
    errors, inside = [], 0
    for number, row in enumerate(rows, 1):
        try:
            case = predict(machine, row)
            rate, limit = measure(machine, row)
        except subprocess.CalledProcessError as error:
            print(f"{number:3} failed: {error}", file=sys.stderr)
            errors.append(math.inf)
            continue
        predicted = case["stated_samples_per_s"]
        errors.append(100 * abs(predicted / rate - 1))
        interval = case["samples_per_s"]
        inside += interval["low"] <= rate <= interval["high"]
        columns = [f"{number}", ", ".join(describe(row)), f"{rate:.0f}", f"{predicted:.0f}",
                   f"{interval['low']:.0f} .. {interval['high']:.0f}",
                   f"{100 * (predicted / rate - 1):+.1f}%", limit, case["limit"]]
        print("| " + " | ".join(columns) + " |" if options.markdown else "  ".join(columns), flush=True)
    print(f"{inside} of {len(rows)} measurements are inside the predicted interval, which knows the spread of the "
          "calibration but not the error of the model")
    good = claim("prediction-median-error", statistics.median(errors), 5)
    good &= claim("prediction-worst-error", max(errors), 10)
    sys.exit(not good)


if __name__ == "__main__":
    main()
