#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check every claim of bench/ on this machine, and write one table.

    bench/all.py [--build build] [--folder DIR] [--only NAME,...] [--json FILE] [--markdown FILE]
    bench/all.py --table docs/results/claims/*.json --markdown docs/results/claims.md

Each program of bench/ prints lines `claim NAME VALUE UNIT goal >=GOAL ok|short` (or <=). A program runs again
until the 95% interval of each of its claims (Student's t over the logarithms of the runs' figures, as rates, times
and ratios scatter by factors; over the figures themselves where one is 0) excludes the goal, at least --least and at
most --most times, or until --minutes have passed for it. A claim then holds, or fails, or is undecided: the goal
is within the interval. Beside it is the noise: the share of the machine's CPU time that others used meanwhile,
which should be below 5%.

The second form joins the JSON of several machines, a column each: what holds on one and fails on another shows
both. A program that cannot run here (exit status 77), or is not built, is listed with its reason, and so is each
library of a line `skipped NAME: REASON`, with which it could not be compared.

--total ends the whole after so many minutes: each program has an equal share of what is left. FILE.json is complete
after each program; one that --total or a signal ends keeps the runs that it finished, and --resume goes on with the
programs that FILE.json does not have."""
import argparse
import json
import math
import os
import platform
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time

CLAIM = re.compile(r"^claim (\S+) (-?[\d.]+) (.*?) ?goal (>=|<=) ?([\d.]+) (ok|short)\b")
RANGE = re.compile(r" ?\([^()]* \.\. [^()]*\)$")  # of a program's rounds, behind the unit
SKIPPED = re.compile(r"^skipped ([^:]+): (.*)")
# Student's t, 97.5%, by degrees of freedom; beyond the last, that of the normal distribution plus little.
T = [math.nan, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145]

# In {braces}: the build folder, the program, an empty folder, the source's bench/.
PROGRAMS = {
    "harness": "{build}/bench/harness",
    "shuffle": "{build}/bench/shuffle",
    "shuffle-quality": "{build}/bench/shuffle-quality",
    "shuffle-learning": "{source}/shuffle-learning.py --iobench {iobench} --folder {folder}/set",
    "parse": "{build}/bench/parse {folder}",
    "catalog": "{build}/bench/catalog",
    "synthesis": "{build}/bench/synthesis",
    "decode": "{build}/bench/decode",
    "io": "{build}/bench/io --rounds 5 {folder}",
    "iops": "{build}/bench/iops {folder}",
    "lanes": "{build}/bench/lanes",
    "nfs": "{build}/bench/nfs",
    "buffer": "{source}/buffer.py --iobench {iobench} --folder {folder}",
    "files": "{source}/files.py --iobench {iobench} --folder {folder}",
    "telemetry": "{build}/bench/telemetry {folder}",
    "trainer": "{build}/bench/trainer --bf16",
    "zoo": "{source}/zoo.py --iobench {iobench} --folder {folder}",
    "zoo-accuracy": "{source}/zoo.py --iobench {iobench} --folder {folder} --accuracy",
    "zoo-bf16": "{source}/zoo.py --iobench {iobench} --folder {folder} --bf16",
    "parity": "{source}/parity.py --forward {build}/bench/forward",
    "telemetry_rates": "{source}/telemetry_rates.py --iobench {iobench} --folder {folder}",
    "loaders": "{source}/loaders.py --iobench {iobench} --folder {folder}",
    "loaders-cold": "{source}/loaders.py --iobench {iobench} --folder {folder} --cold",
    "lmdb-map": "{source}/lmdb-map.py --iobench {iobench} --folder {folder} --rounds 3",
    "knee": "{source}/knee.py --iobench {iobench} --folder {folder} --searches 3",
    "checkpoint": "{source}/checkpoint.py --iobench {iobench} --folder {folder} --mib 512 --rounds 5",
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
    """Return the processor's name, with family and model where the kernel tells: virtual machines hide the name."""
    fields = {}
    for line in open("/proc/cpuinfo", encoding="utf-8", errors="replace"):
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    name = fields.get("model name", platform.machine())
    return f"{name} (family {fields['cpu family']}, model {fields['model']})" if "cpu family" in fields else name


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


SIGNALS = {signal.SIGINT, signal.SIGTERM}


class Ended(Exception):
    """A program was ended: by a signal, or because its time is over."""


def interrupt(number, _frame):
    raise Ended(f"interrupted by {signal.Signals(number).name}")


def end(process):
    """End a program and what it started. It may have a setting of the machine to put back, so it is asked first."""
    try:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def unblock():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def output(command, seconds):
    """Run a program for at most so long. Returns its exit status and what it said. Signals interrupt only this:
    everywhere else they wait, so that no finished run is lost, and no program that nobody knows yet."""
    try:
        with subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True, preexec_fn=unblock) as process:
            try:
                unblock()
                said = process.communicate(timeout=seconds)
            except BaseException:
                signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
                end(process)
                raise
            return process.returncode, *said
    except subprocess.TimeoutExpired:
        raise Ended(f"its share of --total, {seconds:.0f} s, is over") from None
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def run(command, seconds):
    """Run a program once. Returns its claims, the comparisons that it skipped, and the noise; and the reason why
    there are no claims."""
    busy, own, start = busy_seconds(), os.times(), time.monotonic()
    try:
        status, out, err = output(command, seconds)
    except OSError as error:
        return None, {}, None, f"cannot run: {error.strerror}"
    seconds, now = time.monotonic() - start, os.times()
    ours = now.children_user + now.children_system - own.children_user - own.children_system
    noise = 100 * (busy_seconds() - busy - ours) / (seconds * os.cpu_count())
    noise = min(max(noise, 0.0), 100.0) if seconds >= 1 else 0.0  # the counters tick at 100 Hz
    lines = [line for line in out.splitlines() if line.startswith("claim")]
    claims = [CLAIM.match(line) for line in lines]
    skipped = dict(match.groups() for match in map(SKIPPED.match, out.splitlines()) if match)
    if None in claims:
        return None, skipped, noise, "not a claim: " + lines[claims.index(None)]
    if not claims or status not in (0, 1):
        said = (err.strip() or out.strip() or "nothing").splitlines()[-1]
        return None, skipped, noise, f"exit status {status}: {said}"
    return claims, skipped, noise, None


def interval(values):
    """Return the mean and its 95% interval: geometric where all values are above 0."""
    if min(values) > 0:
        return tuple(math.exp(min(x, 700)) for x in plain_interval([math.log(value) for value in values]))
    return plain_interval(values)


def plain_interval(values):
    mean = statistics.mean(values)
    if len(values) < 2:
        return mean, -math.inf, math.inf
    half = (T[len(values) - 1] if len(values) <= len(T) else 2.1) * \
        statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def verdict(claim):
    _, low, high = interval(claim["values"])
    goal = claim["goal"] if claim["sense"] == ">=" else -claim["goal"]
    low, high = (low, high) if claim["sense"] == ">=" else (-high, -low)
    return "holds" if low >= goal else "fails" if high < goal else "undecided"


def judge(claim):
    """Set what follows from what the program printed."""
    claim["unit"] = RANGE.sub("", claim["unit"])
    claim["mean"], low, high = interval(claim["values"])
    if len(claim["values"]) > 1:
        claim["low"], claim["high"] = low, high
    claim["verdict"] = verdict(claim)


def note(found, name, claims, noise):
    for match in claims:
        claim = found.setdefault(match[1], {
            "name": match[1], "program": name, "unit": match[3], "sense": match[4],
            "goal": float(match[5]), "values": [], "noise_percent": []})
        claim["values"].append(float(match[2]))
        claim["noise_percent"].append(round(noise, 1))


def examine(name, command, options, share):
    """Run one program as often as it takes, at most for its share (seconds; None: no limit). Returns its claims by
    name, the comparisons that it skipped, why it has no claims, and why it was ended."""
    found, skipped, ended, start = {}, {}, None, time.monotonic()
    for count in range(1, options.most + 1):
        used = time.monotonic() - start
        try:
            claims, left_out, noise, why = run(command, share and max(share - used, 0.0))
        except Ended as error:
            ended = str(error)
            break
        if why:
            return {}, {}, why, None
        skipped.update({f"{name}, {peer}": reason for peer, reason in left_out.items()})
        note(found, name, claims, noise)
        decided = sum(verdict(claim) != "undecided" for claim in found.values())
        print(f"{name}: run {count}, {decided} of {len(found)} claims decided, noise {noise:.1f}%",
              file=sys.stderr, flush=True)
        if (decided == len(found) and count >= options.least) or \
                time.monotonic() - start > options.minutes * 60:
            break
    for claim in found.values():
        judge(claim)
    return found, skipped, None if found else ended, ended


def cell(claim):
    """Return a figure with its interval, verdict and noise."""
    if not claim:
        return ""
    spread = f" ({claim['low']:.3g} .. {claim['high']:.3g})" if "low" in claim else ""
    noise = max(claim["noise_percent"])
    return f"{claim['mean']:.3g}{spread} **{claim['verdict']}**" + (f", noise {noise:.0f}%" if noise >= 5 else "")


def table(documents):
    """Return the page: a row per claim, a column per machine."""
    for document in documents:
        for claim in document["claims"]:  # by this program's rules, whoever wrote the file
            judge(claim)
    machines = [document["machine"] for document in documents]
    claims = {}
    for column, document in enumerate(documents):
        for claim in document["claims"]:
            claims.setdefault((claim["program"], claim["name"]), {})[column] = claim
    lines = ["# Claims", "", "Generated by `bench/all.py`: mean (geometric) and 95% interval over the runs of each program, "
             "and whether the goal is outside the interval. Noise is the share of the CPU time that others used meanwhile, "
             "if it is 5% or more: then a verdict says little.", "", "| machine | processor | memory | kernel | date |",
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


def save(document, path):
    """Replace the file at once: what was measured before stays if this is interrupted."""
    if not path:
        return
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def begin(options):
    """Return the document to add to, and the names of the programs that it has."""
    document = {"iobench_claims": 1, "machine": machine(options.label), "claims": [], "skipped": {}}
    if options.resume and os.path.exists(options.json):
        before = json.load(open(options.json, encoding="utf-8"))
        for field in ("label", "processor", "cpus", "memory_bytes", "kernel"):
            if before["machine"][field] != document["machine"][field]:
                sys.exit(f"{options.json}: measured on another machine, its {field} differs; choose another file")
        document = before
    return document, {claim["program"] for claim in document["claims"]} | set(document["skipped"])


def measure(options):
    document, done = begin(options)
    places = {"build": os.path.abspath(options.build), "iobench": os.path.abspath(options.build) + "/iobench",
              "source": os.path.dirname(os.path.abspath(__file__))}
    programs = dict(item.split("=", 1) for item in options.program) or PROGRAMS
    names = [name for name in (options.only.split(",") if options.only else programs) if name not in done]
    end_s = time.monotonic() + options.total * 60 if options.total else None
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    for number in SIGNALS:
        signal.signal(number, interrupt)
    for at, name in enumerate(names):
        share = end_s and max(end_s - time.monotonic(), 0.0) / (len(names) - at)
        folder = os.path.join(os.path.abspath(options.folder), name)
        os.makedirs(folder, exist_ok=True)
        found, skipped, why, ended = examine(
            name, programs[name].format(folder=shlex.quote(folder), **places), options, share)
        subprocess.run(["rm", "-rf", "--", folder], check=False)
        interrupted = ended and ended.startswith("interrupted")
        document["claims"] += found.values()
        document["skipped"].update(skipped)
        if why and not interrupted:
            document["skipped"][name] = why
        save(document, options.json)
        if interrupted:
            print(f"{name}: {ended}; --resume goes on", file=sys.stderr)
            break
    return document


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--folder", default="bench-all.tmp", help="for data sets, on the storage to measure")
    parser.add_argument("--only", help="these programs alone")
    parser.add_argument("--least", type=int, default=3, help="runs of each program, when all is decided")
    parser.add_argument("--most", type=int, default=15, help="runs of each program")
    parser.add_argument("--minutes", type=float, default=30, help="for each program")
    parser.add_argument("--total", type=float, help="minutes for all programs together")
    parser.add_argument("--resume", action="store_true", help="go on with the file of --json")
    parser.add_argument("--label", help="the machine's name in the table")
    parser.add_argument("--program", action="append", default=[], metavar="NAME=COMMAND",
                        help="run these instead of all of bench/")
    parser.add_argument("--table", nargs="+", metavar="JSON", help="measure nothing; join these files")
    parser.add_argument("--json", help="write the figures")
    parser.add_argument("--markdown", help="write the table; default: print it")
    options = parser.parse_args()
    if options.resume and not options.json:
        parser.error("--resume needs --json")
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
