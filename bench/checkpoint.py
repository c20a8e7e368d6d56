#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does iobench checkpoint write as fast as fio writes the same files?

    bench/checkpoint.py [--iobench build/iobench] [--folder DIR] [--mib 2048] [--ranks 4]
                        [--chunk MIB] [--iodepth 4] [--rounds 11] [--only CASE]

Each round has one checkpoint of both programs, in random order. fio writes the same files: a job per
file, the second one of a rank waits for its first, so ranks write at the same time and each of them
one file at a time; io_uring, the same chunks and depth, preallocated, fsync at the end of each file,
out of huge pages like ours: a chunk in single pages is more segments than a disk takes in one request.
The time of either is that of its slowest rank, by its own clock. fio writes unchanging buffers;
iobench makes each block unique and takes its checksum. Cases: buffered, direct. The claims are the
medians of the ratios of the rounds. Files are whole chunks, since fio leaves out the rest.
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


def run(arguments, **more):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          universal_newlines=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_iobench(args, direct):
    """One checkpoint: bytes per second, and its files as (rank, bytes)."""
    target, result = os.path.join(args.folder, "iobench"), os.path.join(args.folder, "result.json")
    chunks = max(1, args.mib // args.chunk // args.ranks // 7)  # of a rank's weights; 7 in all
    parameters = chunks * (args.chunk << 20) // 2 * args.ranks
    run([args.iobench, "checkpoint", target, "--model", f"bench,params={parameters}",
         "--ranks", str(args.ranks), "--chunk", f"{args.chunk}M", "--iodepth", str(args.iodepth),
         "--writer", "uring", "--writes", "1", "--reads", "0", "--leave", "--json", result] +
        ["--direct"] * direct)
    with open(result, encoding="utf-8") as file:
        rate = json.load(file)["write"]["bytes_per_s"]
    files = []
    with open(os.path.join(target, "checkpoint-000001", "manifest"), encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "file":
                files.append((int(words[2]), int(words[3])))
    shutil.rmtree(target)
    return rate, files


def run_fio(args, direct, files):
    target = os.path.join(args.folder, "fio")
    os.mkdir(target)
    job = os.path.join(args.folder, "job.fio")
    last = {}
    with open(job, "w", encoding="ascii") as text:
        text.write(f"[global]\nioengine=io_uring\nrw=write\nbs={args.chunk}M\n"
                   f"iodepth={args.iodepth}\ndirect={int(direct)}\nend_fsync=1\nthread=1\n"
                   f"fallocate=posix\ndirectory={target}\nfixedbufs={int(direct)}\niomem_align=4096\n")
        for number, (rank, bytes_) in enumerate(files):
            text.write(f"[f{number}]\nfilename=f{number}\nsize={bytes_}\n")
            if rank in last:
                text.write(f"wait_for=f{last[rank]}\n")
            last[rank] = number
    report = json.loads(run(["fio", "--output-format=json", job],
                            env=dict(os.environ, GLIBC_TUNABLES="glibc.malloc.hugetlb=1")))
    times = {}
    for found in report["jobs"]:
        rank, bytes_ = files[int(found["jobname"][1:])]
        assert found["write"]["io_bytes"] == bytes_, (found["write"]["io_bytes"], bytes_)
        times[rank] = times.get(rank, 0) + found["job_runtime"]
    shutil.rmtree(target)
    return sum(bytes_ for _, bytes_ in files) / (max(times.values()) / 1e3)


def measure(args, direct):
    ratios, rates = [], {"iobench": [], "fio": []}
    _, files = run_iobench(args, direct)
    for _ in range(args.rounds):
        found = {}
        for name in random.sample(["iobench", "fio"], 2):
            os.sync()
            found[name] = (run_iobench(args, direct)[0] if name == "iobench" else
                           run_fio(args, direct, files))
            rates[name].append(found[name])
        ratios.append(found["iobench"] / found["fio"])
        print(f"  iobench {found['iobench'] / 1e6:7.0f} MB/s   fio {found['fio'] / 1e6:7.0f} MB/s   "
              f"ratio {ratios[-1]:.3f}", flush=True)
    return ratios, rates


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default=".", help="where checkpoint-bench is made and removed")
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--chunk", type=int, default=4)
    parser.add_argument("--iodepth", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", choices=["buffered", "direct"])
    args = parser.parse_args()
    random.seed(1)
    args.folder = os.path.join(args.folder, "checkpoint-bench")
    os.makedirs(args.folder)
    try:
        lines = []
        for case in [args.only] if args.only else ["buffered", "direct"]:
            print(f"{case}: {args.ranks} ranks, {args.iodepth} x {args.chunk} MiB in flight each")
            ratios, rates = measure(args, case == "direct")
            ratio = statistics.median(ratios)
            spread = statistics.stdev(map(math.log, ratios)) if len(ratios) > 1 else math.nan
            lines.append(f"claim checkpoint_write_{case} {ratio:.3f} x-fio goal >=0.98 "
                         f"{'ok' if ratio >= 0.98 else 'short'} "
                         f"(iobench {statistics.median(rates['iobench']) / 1e6:.0f} MB/s, "
                         f"fio {statistics.median(rates['fio']) / 1e6:.0f} MB/s, "
                         f"{len(ratios)} rounds, ratios spread {100 * spread:.1f}%)")
        print("\n".join(lines))
    finally:
        shutil.rmtree(args.folder)


main()
