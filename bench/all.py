#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check every claim of bench/ on this machine, and write one table.

    bench/all.py [--build build] [--folder DIR] [--only NAME,...] [--json FILE] [--markdown FILE]
    bench/all.py --table FILE.json ... [--markdown FILE]

Each program of bench/ prints lines `claim NAME VALUE UNIT goal >=GOAL ok|short` (or <=). A program runs again
until the 95% interval of each of its claims (Student's t over the runs) excludes the goal, at least --least and at
most --most times, or until --minutes have passed for it. A claim then holds, or fails, or is undecided: the goal
is within the interval. Beside it is the noise: the share of the machine's CPU time that others used meanwhile,
which should be below 5%.

The second form joins the JSON of several machines, a column each: what holds on one and fails on another shows
both. A program that cannot run here (exit status 77), or is not built, is listed with its reason."""
import argparse
import json
import math
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import time

CLAIM = re.compile(r"^claim (\S+) (-?[\d.]+) (.*?) ?goal (>=|<=) ?([\d.]+) (ok|short)\b")
# Student's t, 97.5%, by degrees of freedom; beyond the last, that of the normal distribution plus little.
T = [math.nan, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145]

# In {braces}: the build folder, the program, an empty folder, the source's bench/.
PROGRAMS = {
    "harness": "{build}/bench/harness",
    "shuffle": "{build}/bench/shuffle",
    "shuffle-quality": "{build}/bench/shuffle-quality",
    "catalog": "{build}/bench/catalog",
    "synthesis": "{build}/bench/synthesis",
    "decode": "{build}/bench/decode",
    "io": "{build}/bench/io --rounds 5 {folder}",
    "iops": "{build}/bench/iops {folder}",
    "lanes": "{build}/bench/lanes",
    "files": "{source}/files.py --iobench {iobench} --folder {folder}",
    "telemetry": "{build}/bench/telemetry {folder}",
    "trainer": "{build}/bench/trainer",
    "telemetry_rates": "{source}/telemetry_rates.py --iobench {iobench} --folder {folder}",
    "loaders": "{source}/loaders.py --iobench {iobench} --folder {folder}",
    "loaders-cold": "{source}/loaders.py --iobench {iobench} --folder {folder} --cold",
    "lmdb-map": "{source}/lmdb-map.py --iobench {iobench} --folder {folder}",
    "knee": "{source}/knee.py --iobench {iobench} --folder {folder}",
    "checkpoint": "{source}/checkpoint.py --iobench {iobench} --folder {folder}",
    "net": "{source}/net.py --iobench {iobench} --reference {build}/bench/net_mpi",
    "ramp": "{source}/ramp.py --iobench {iobench} --folder {folder}",
    "against": "{source}/against.py {iobench} {folder}",
    "predict": "{source}/predict.py {iobench} {folder}",
    "curve": "{source}/curve.py {iobench} {folder}",
    "nodes": "{source}/nodes.py {iobench} {folder}",
    "device_kernels": "{build}/bench/device_kernels",
    "device_steps": "{build}/bench/device_steps",
}


def processor():
    for line in open("/proc/cpuinfo", encoding="utf-8", errors="replace"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine(label):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"label": label or f"{os.cpu_count()} x {processor()}", "kernel": platform.release(),
            "cpus": os.cpu_count(), "processor": processor(), "memory_bytes": memory,
            "date": time.strftime("%Y-%m-%d")}


def busy_seconds():
    """Return the CPU time that all processes of the machine, and its neighbours (steal), have used."""
    fields = [int(field) for field in open("/proc/stat", encoding="ascii").readline().split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def run(command):
    """Run a program once. Returns its claims and the noise, or the reason why there are none."""
    busy, own, start = busy_seconds(), os.times(), time.monotonic()
    try:
        done = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
    except OSError as error:
        return None, None, f"cannot run: {error.strerror}"
    seconds, now = time.monotonic() - start, os.times()
    ours = now.children_user + now.children_system - own.children_user - own.children_system
    noise = 100 * (busy_seconds() - busy - ours) / (seconds * os.cpu_count())
    noise = min(max(noise, 0.0), 100.0) if seconds >= 1 else 0.0  # the counters tick at 100 Hz
    lines = [line for line in done.stdout.splitlines() if line.startswith("claim")]
    claims = [CLAIM.match(line) for line in lines]
    if None in claims:
        return None, noise, "not a claim: " + lines[claims.index(None)]
    if not claims or done.returncode not in (0, 1):
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        return None, noise, f"exit status {done.returncode}: {said}"
    return claims, noise, None


def interval(values):
    """Return the 95% interval of the mean, or none."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = (T[len(values) - 1] if len(values) <= len(T) else 2.1) * \
        statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values) - half, statistics.mean(values) + half


def verdict(claim):
    low, high = interval(claim["values"])
    goal = claim["goal"] if claim["sense"] == ">=" else -claim["goal"]
    low, high = (low, high) if claim["sense"] == ">=" else (-high, -low)
    return "holds" if low >= goal else "fails" if high < goal else "undecided"


def examine(name, command, options):
    """Run one program as often as it takes. Returns its claims by name and why it has none."""
    found, start = {}, time.monotonic()
    for count in range(1, options.most + 1):
        claims, noise, why = run(command)
        if why:
            return {}, why
        for match in claims:
            claim = found.setdefault(match[1], {
                "name": match[1], "program": name, "unit": match[3], "sense": match[4],
                "goal": float(match[5]), "values": [], "noise_percent": []})
            claim["values"].append(float(match[2]))
            claim["noise_percent"].append(round(noise, 1))
        decided = all(verdict(claim) != "undecided" for claim in found.values())
        print(f"{name}: run {count}, {sum(verdict(claim) != 'undecided' for claim in found.values())} of "
              f"{len(found)} claims decided, noise {noise:.1f}%", file=sys.stderr, flush=True)
        if (decided and count >= options.least) or time.monotonic() - start > options.minutes * 60:
            break
    for claim in found.values():
        claim["mean"] = statistics.mean(claim["values"])
        if len(claim["values"]) > 1:
            claim["low"], claim["high"] = interval(claim["values"])
        claim["verdict"] = verdict(claim)
    return found, None


def cell(claim):
    """Return a figure with its interval, verdict and noise."""
    if not claim:
        return ""
    spread = f" ({claim['low']:.3g} .. {claim['high']:.3g})" if "low" in claim else ""
    noise = max(claim["noise_percent"])
    return f"{claim['mean']:.3g}{spread} **{claim['verdict']}**" + (f", noise {noise:.0f}%" if noise >= 5 else "")


def table(documents):
    """Return the page: a row per claim, a column per machine."""
    machines = [document["machine"] for document in documents]
    claims = {}
    for column, document in enumerate(documents):
        for claim in document["claims"]:
            claims.setdefault((claim["program"], claim["name"]), {})[column] = claim
    lines = ["# Claims", "", "Generated by `bench/all.py`: mean and 95% interval over the runs of each program, "
             "and whether the goal is outside the interval.", "", "| machine | processor | memory | kernel | date |",
             "|---|---|---|---|---|"]
    lines += [f"| {m['label']} | {m['cpus']} x {m['processor']} | {m['memory_bytes'] / 2 ** 30:.0f} GiB | "
              f"{m['kernel']} | {m['date']} |" for m in machines]
    lines += ["", "| program | claim | goal | " + " | ".join(m["label"] for m in machines) + " |",
              "|---|---|---|" + "---|" * len(machines)]
    for (program, name), columns in claims.items():
        any_claim = next(iter(columns.values()))
        cells = " | ".join(cell(columns.get(column)) for column in range(len(machines)))
        goal = f"{any_claim['sense']} {any_claim['goal']:g} {any_claim['unit']}".strip()
        lines.append(f"| {program} | {name} | {goal} | {cells} |")
    for document in documents:
        for program, why in document["skipped"].items():
            lines.append(f"\nNot on {document['machine']['label']}: `{program}`: {why}")
    return "\n".join(lines) + "\n"


def measure(options):
    document = {"iobench_claims": 1, "machine": machine(options.label), "claims": [], "skipped": {}}
    places = {"build": os.path.abspath(options.build), "iobench": os.path.abspath(options.build) + "/iobench",
              "source": os.path.dirname(os.path.abspath(__file__))}
    programs = dict(item.split("=", 1) for item in options.program) or PROGRAMS
    for name in options.only.split(",") if options.only else programs:
        folder = os.path.join(os.path.abspath(options.folder), name)
        os.makedirs(folder, exist_ok=True)
        found, why = examine(name, programs[name].format(folder=shlex.quote(folder), **places), options)
        subprocess.run(["rm", "-rf", "--", folder], check=False)
        document["claims"] += found.values()
        if why:
            document["skipped"][name] = why
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.write("\n")
    return document


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--folder", default="bench-all.tmp", help="for data sets, on the storage to measure")
    parser.add_argument("--only", help="these programs alone")
    parser.add_argument("--least", type=int, default=3, help="runs of each program, when all is decided")
    parser.add_argument("--most", type=int, default=15, help="runs of each program")
    parser.add_argument("--minutes", type=float, default=30, help="for each program")
    parser.add_argument("--label", help="the machine's name in the table")
    parser.add_argument("--program", action="append", default=[], metavar="NAME=COMMAND",
                        help="run these instead of all of bench/")
    parser.add_argument("--table", nargs="+", metavar="JSON", help="measure nothing; join these files")
    parser.add_argument("--json", help="write the figures")
    parser.add_argument("--markdown", help="write the table; default: print it")
    options = parser.parse_args()
    documents = [json.load(open(path, encoding="utf-8")) for path in options.table or []] or [measure(options)]
    page = table(documents)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(page)
    else:
        print(page, end="")
    claims = [claim for document in documents for claim in document["claims"]]
    sys.exit(any(claim["verdict"] == "fails" for claim in claims) or not claims)


if __name__ == "__main__":
    main()
