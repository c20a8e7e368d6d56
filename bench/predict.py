#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well does `iobench size --simulate` predict what `iobench run` measures?

    bench/predict.py IOBENCH FOLDER [--count 24] [--seed 1] [--samples 6000] [--runs 3] [--markdown]

Draws configurations from a seed before anything is measured: formats, shuffles, storage rates
(--limit-rate), decoding, decode threads, GPUs (replay), memory, batches, long and short epochs, two
ranks if mpirun is there, and a page cache smaller than the data (--memory-limit) where the rate is limited. In each
of --runs rounds measures the machine (decoding on one and on all cores, reading from memory) and runs each
configuration once; predicts each from the medians of the first alone, and compares with those of the second. A
prediction knows the options of a run and the sizes of what they read, nothing that was measured in it. The first
epoch's rate, its first batch included, is compared as well, and the time until that batch. `claim` lines come last.
A run that others dropped the page cache of is repeated. FOLDER is on a disk: reads from a tmpfs do not end in the call
that begins them.
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
RETRIES = 5
READ_WAYS = {"together": ["--shuffle", "none"], "alone": ["--shuffle", "epoch", "--window", "1"]}
READ_DEPTH = 32  # of iobench run
RATE_CREDIT_S = 0.25  # of --limit-rate
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
        self.rates = {}  # samples/s, by what was measured: one of each round
        self.reads = {}  # of a sample, likewise
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
            self.sets[name] = path
        return self.sets[name]

    def plan(self, row):
        """What the options of a run read, told by a reader that reads nothing."""
        job = self.call([*order_of(self, row), "--reader", "null", "--decode", "none", "--runs", "1"], row["ranks"])
        return job["summary"]

    def call_warm(self, name, arguments, ranks=1):
        """Run out of memory: again if another process dropped the page cache meanwhile."""
        for _ in range(RETRIES):
            self.call(["--data", self.data(name), "--decode", "none", "--runs", "1"])
            job = self.call(arguments, ranks)
            epochs = [epoch for run in job["runs"] for epoch in run["epochs"]]
            if all(epoch["device_read_bytes"] < epoch["record_bytes"] / 100 for epoch in epochs):
                break
        return job

    def sample(self, key, name, ranks, *arguments):
        job = self.call_warm(name, ["--data", self.data(name), "--runs", "1", "--epochs", "4", "--batch-size", "64",
                                    *arguments], ranks)
        self.rates.setdefault(key, []).append(job["summary"]["samples_per_s"])
        return job["summary"]["requests"] / job["summary"]["samples"]

    def calibrate(self, rows):
        """One round. Decoding does not depend on the format; reading from memory does, and on how many records a
        read brings and how many ranks read at once."""
        for name, ranks in sorted({("recordio", 1)} | {(row["format"], row["ranks"]) for row in rows}):
            for way in READ_WAYS:
                key = f"{name} {way}, {ranks} ranks"
                self.reads[key] = self.sample(key, name, ranks, "--decode", "none", "--decode-threads", "1",
                                              *READ_WAYS[way])
        self.sample("one core", "recordio", 1, "--decode-threads", "1")
        self.sample("all cores", "recordio", 1, "--decode-threads", str(self.cores))

    def conclude(self):
        rates = {key: statistics.median(values) for key, values in self.rates.items()}
        self.medians = rates
        self.decode_s = 1 / rates["one core"]
        self.cores_used = rates["all cores"] * (self.decode_s + self.load_s("recordio", 1, 0))
        self.spread = max(2 * statistics.stdev(values) / math.sqrt(len(values)) / rates[key]
                          for key, values in self.rates.items()) if self.options.runs > 1 else 0
        print("samples/s, median (least .. most): " + "; ".join(
            f"{key} {rates[key]:.0f} ({min(values):.0f} .. {max(values):.0f})" for key, values in self.rates.items()))

    def load_s(self, name, ranks, reads):
        """Return the time of a rank's I/O thread per sample, given reads per sample."""
        (few, few_s), (many, many_s) = ((self.reads[key], ranks / self.medians[key]) for key in
                                        (f"{name} {way}, {ranks} ranks" for way in READ_WAYS))
        share = (reads - few) / (many - few) if many - few > 0.1 else 0.5
        return few_s + (many_s - few_s) * min(max(share, 0), 1)


def profile_text(sections, source):
    lines = []
    for section, figures in sections.items():
        lines += [f"[{section}]", f"source={source}"]
        lines += [f"{key}={value}" for key, value in figures.items()]
    return "\n".join(lines) + "\n"


def uncertain(value, machine):
    return f"{value} +-{100 * machine.spread:.3g}%" if machine.spread > 0 else value


def profile_of(machine, row, sizes_of):
    """sizes_of: the configuration whose records have the sizes."""
    plan = machine.plan(sizes_of)
    record, read = plan["record_bytes"] / plan["samples"], plan["request_bytes"] / plan["requests"]
    fetched = plan["samples"] / sizes_of["epochs"]
    decodes = row["decode"] != "none"
    buffer = int(row["shuffle"].split("=")[1]) if "=" in row["shuffle"] else 0
    if sizes_of["samples"] < machine.options.samples:
        fetched += buffer * row["ranks"]  # a limit ends the epoch; the buffer has been filled from the rest of the order
    load_s = machine.load_s(row["format"], row["ranks"], plan["requests"] / sizes_of["epochs"] / fetched)
    # In file order a window brings nothing out of order.
    window = row["window"] if row["shuffle"] != "none" else 0
    rate = row["rate_mb"] * 1e6 if row["rate_mb"] else 1e12
    sections = {
        "gpu": {"samples-per-s": row["gpu"] or 1e9},
        "network": {"batch": row["batch"], "gradient-bytes": 0},
        "data": {"sample-bytes": record, "samples": row["samples"],
                 "read-bytes": read,
                 "amplification": plan["request_bytes"] / sizes_of["epochs"] / fetched / record},
        "cpu": {"decode-core-s": uncertain(machine.decode_s, machine) if decodes else 0,
                "load-core-s": uncertain(load_s, machine)},
        "node": {"gpus": 1, "cores": machine.cores_used / row["ranks"],
                 "decode-threads": row["threads"], "prefetch": row["prefetch"],
                 "record-bytes": row["memory_mib"] * 1048576, "cache-bytes": 0,
                 "depth": READ_DEPTH, "storage-port-bytes-per-s": 0, "fabric-port-bytes-per-s": 0},
        "storage": {"scope": "node", "read-bytes-per-s": rate, "read-iops": 0, "latency-s": 0,
                    "latency-cv": 0, "client-bytes-per-s": 0, "credit-s": RATE_CREDIT_S if row["rate_mb"] else 0},
        "job": {"epochs": row["epochs"], "buffer-samples": buffer, "window-samples": window,
                "undrawn-samples": machine.options.samples - row["samples"]},
    }
    return profile_text(sections, "bench/predict.py")


def predict(machine, row):
    case = simulate(machine, row, row)
    # The records of the first batch are too few to have the mean size of all.
    first = {**row, "samples": min(row["samples"], row["batch"] * row["ranks"]), "epochs": 1}
    case["first_batch_s"] = simulate(machine, row, first)["first_batch_s"]
    return case


def simulate(machine, row, sizes_of):
    path = os.path.join(machine.options.folder, "predict.ini")
    with open(path, "w", encoding="utf-8") as file:
        file.write(profile_of(machine, row, sizes_of))
    done = subprocess.run([machine.options.iobench, "size", "--simulate", "--gpus", str(row["ranks"]),
                           "--profile", path, "--json"],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["cases"][0]


def order_of(machine, row):
    """The options that decide what is read."""
    arguments = ["--data", machine.data(row["format"]), "--shuffle", row["shuffle"], "--batch-size", str(row["batch"]),
                 "--window", str(row["window"]), "--memory", f"{row['memory_mib']}MiB",
                 "--epochs", str(row["epochs"])]
    if row["samples"] < machine.options.samples:
        arguments += ["--limit-samples", str(row["samples"])]
    return arguments


def measure(machine, row):
    arguments = [*order_of(machine, row), "--decode", row["decode"], "--decode-threads", str(row["threads"]),
                 "--prefetch", str(row["prefetch"]), "--runs", "1"]
    if row["rate_mb"]:
        arguments += ["--limit-rate", f"{int(row['rate_mb'] * 1e6)}B/s"]
    if limits_memory(row):
        arguments += ["--memory-limit", f"{memory_limit_mib(row)}MiB"]
    if row["gpu"]:
        arguments += ["--trainer", f"replay:rate={row['gpu']:.1f}"]
    if row["rate_mb"]:
        return machine.call(arguments, row["ranks"])
    return machine.call_warm(row["format"], arguments, row["ranks"])


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
    jobs = [[] for _ in rows]
    for _ in range(options.runs):
        machine.calibrate(rows)
        for number, row in enumerate(rows):
            try:
                jobs[number].append(measure(machine, row))
            except subprocess.CalledProcessError as error:
                print(f"{number + 1:3} failed: {error}", file=sys.stderr)
    machine.conclude()
    errors, firsts, inside = [], [], 0
    for number, (row, done) in enumerate(zip(rows, jobs), 1):
        if not done:
            errors.append(math.inf)
            continue
        case = predict(machine, row)
        rate = statistics.median(job["summary"]["samples_per_s"] for job in done)
        epochs = [job["runs"][0]["epochs"][0] for job in done]
        first_s = statistics.median(epoch["wall_s"] for epoch in epochs)
        batch_s = statistics.median(epoch["first_batch_s"] for epoch in epochs)
        predicted, interval = case["stated_samples_per_s"], case["samples_per_s"]
        errors.append(100 * (predicted / rate - 1))
        firsts.append(100 * (case["first_epoch_samples_per_s"] * first_s / row["samples"] - 1))
        inside += interval["low"] <= rate <= interval["high"]
        columns = [f"{number}", ", ".join(describe(row)), f"{rate:.0f}", f"{predicted:.0f}",
                   f"{interval['low']:.0f} .. {interval['high']:.0f}", f"{errors[-1]:+.1f}%", f"{firsts[-1]:+.1f}%",
                   f"{1000 * batch_s:.1f}", f"{1000 * case['first_batch_s']:.1f}", case["limit"]]
        print("| " + " | ".join(columns) + " |" if options.markdown else "  ".join(columns), flush=True)
    print(f"{inside} of {len(rows)} measurements are inside the predicted interval, which knows the spread of the "
          "calibration but not the error of the model")
    good = claim("prediction-median-error", statistics.median(map(abs, errors)), 5)
    good &= claim("prediction-worst-error", max(map(abs, errors)), 5)
    good &= claim("prediction-first-epoch-worst-error", max(map(abs, firsts), default=math.inf), 5)
    sys.exit(not good)


if __name__ == "__main__":
    main()
