#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the whole pipeline reach the device's throughput at its saturation depth?

    bench/knee.py [--long] [--iobench build/iobench] [--folder DIR] [--case NAME] [--rounds N]
                  [--searches N] [--make] [--keep]

Two sets of records as large as ImageNet's: 1,024 TFRecord shards in tf.data's order, and one
RecordIO file (--long: of 20 GB) in random order of its records; both O_DIRECT. `--iodepth auto`
finds the saturation depth, in --searches searches, of which 9 in 10 should find the same within a
factor of two. At their median iobench reads, alternating with fio (io_uring), which
replays reads of the same pattern and sizes: the device's throughput. iobench also reads at depth
64, which would show a saturation depth that was found too low.

The patterns: windows of records drawn at random, sorted by offset, as large as the loader's
(--window, at each depth); and as many shards as tf.data interleaves, each read from front to back
in blocks as large as the loader's were. fio reads the same files. --make only generates the sets;
--keep does not remove them.
"""
import argparse
import functools
import json
import os
import random
import shutil
import statistics
import struct
import subprocess

SIZES = {32: 10, 64: 22, 96: 25, 128: 20, 160: 11, 224: 8, 384: 4}  # KiB: percent, as in bench/io
MEAN = 1024 * sum(size * percent for size, percent in SIZES.items()) // 100
SHARDS = 1024
INTERLEAVED = 10  # shards, by --shuffle tfdata
SORTED = (1 << 28) // MEAN  # records per window
MEMORY = 3 << 29  # for such windows
DEEP = 64
FOR_KNEE = [6 * 10**9, 30 * 10**9, 180 * 10**9]  # bytes; the longest search reads about 90 GB


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def recordio(bytes_, number):
    """dmlc RecordIO: magic, length, then MXNet's header of flag, label, id, id2, and the image."""
    return struct.pack("<IIIfQQ", 0xced7230a, 24 + bytes_, 0, number % 1000, number, 0)


@functools.lru_cache
def tfrecord_length(bytes_):
    length = struct.pack("<Q", bytes_)
    return length + struct.pack("<I", masked(crc32c(length)))


def tfrecord(bytes_, _):
    return tfrecord_length(bytes_)


def write_records(path, head, tail, total, noise, draw):
    """Write records of up to total bytes, without CRCs, since nothing here checks them."""
    at, number = 0, 0
    with open(path, "wb", buffering=1 << 20) as file:
        while at < total:
            bytes_ = draw.choices(list(SIZES), SIZES.values())[0] * 1024 - 64
            start = draw.randrange(0, len(noise) - bytes_, 8)
            file.writelines([head(bytes_, number), noise[start:start + bytes_], tail])
            at += 32 + bytes_
            number += 1


def make_sets(folder, case, bytes_):
    noise, draw = memoryview(random.Random(1).randbytes(64 << 20)), random.Random(2)
    os.makedirs(folder)
    if case == "recordio-epoch":
        write_records(folder + "/train.rec", recordio, b"", bytes_, noise, draw)
    else:
        for shard in range(SHARDS):
            write_records(f"{folder}/train-{shard:05}-of-{SHARDS:05}", tfrecord, bytes(4),
                          bytes_ // SHARDS, noise, draw)
    os.sync()


CASES = {"tfdata-1024": ["--format", "shards", "--shuffle", "tfdata", "--window", str(SORTED)],
         "recordio-epoch": ["--format", "recordio", "--shuffle", "epoch", "--window", str(SORTED),
                            "--memory", str(MEMORY)]}


def run_iobench(options, folder, case, depth, bytes_=0):
    passes = ["--limit-samples", str(options.samples)]
    if depth == "auto":
        passes = ["--epochs", str(-(-bytes_ // options.bytes))]
    arguments = [options.iobench, "--data", folder, "--reader", "uring:direct=yes", "--decode",
                 "none", "--no-crc", "--runs", "1", "--no-calibrate", "--json", "-", "--iodepth",
                 str(depth), *passes, *CASES[case]]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit("knee: " + done.stderr.strip())
    job = json.loads(done.stdout)["jobs"][0]
    return job["engine"]["iodepth"], job["runs"][0]["epochs"][0]


def records(files, total, draw):
    """(file, offset, bytes) of records of one file in random order, each group of SORTED sorted by offset."""
    size = os.path.getsize(files[0])
    while total > 0:
        window = [(draw.randrange(0, size - (1 << 20), 512),
                   draw.choices(list(SIZES), SIZES.values())[0] * 1024) for _ in range(SORTED)]
        total -= sum(bytes_ for _, bytes_ in window)
        yield from ((files[0], *read) for read in sorted(window))


def streams(files, total, block, draw):
    """(file, offset, bytes) of blocks of INTERLEAVED shards, each read to its end."""
    size = os.path.getsize(files[0])
    files = draw.sample(files, len(files))
    for group in range(0, len(files), INTERLEAVED):
        for at in range(0, size - block + 1, block):
            for file in files[group:group + INTERLEAVED]:
                yield file, at, block
                total -= block
                if total <= 0:
                    return


def write_reads(path, reads):
    reads = list(reads)
    last = {file: number for number, (file, _, _) in enumerate(reads)}
    opened = set()
    with open(path, "w", encoding="ascii") as log:
        log.write("fio version 2 iolog\n")
        log.writelines(f"{file} add\n" for file in last)
        for number, (file, offset, bytes_) in enumerate(reads):
            if file not in opened:
                opened.add(file)
                log.write(f"{file} open\n")
            log.write(f"{file} read {offset} {bytes_}\n")
            if last[file] == number:
                log.write(f"{file} close\n")


def run_fio(reads, depth):
    environment = dict(os.environ, GLIBC_TUNABLES="glibc.malloc.hugetlb=1")  # as bench/io
    done = subprocess.run(["fio", "--name=knee", "--ioengine=io_uring", "--thread", "--direct=1",
                           "--fixedbufs=1", f"--read_iolog={reads}", f"--iodepth={depth}",
                           "--output-format=json"],
                          capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"]


def claim(name, value, unit, goal):
    print(f"claim {name} {value:.3f} {unit} goal >={goal} {'ok' if value >= goal else 'short'}", flush=True)


def claim_ratio(name, unit, ours, others):
    claim(name, statistics.median(a / b for a, b in zip(ours, others)), unit, 0.97)


def search(options, folder, case):
    """Return the saturation depth that a search finds, and an epoch; 0 if it finds none."""
    for bytes_ in FOR_KNEE:
        depth, epoch = run_iobench(options, folder, case, "auto", bytes_)
        if depth:
            break
    return depth, epoch


def in_mib(values):
    return (f"{statistics.median(values) / 2**20:.0f} MiB/s "
            f"({min(values) / 2**20:.0f} .. {max(values) / 2**20:.0f})")


def measure(options, case, folder):
    files = sorted(entry.path for entry in os.scandir(folder) if entry.name.startswith("train"))
    depths = []
    for _ in range(options.searches):
        depth, epoch = search(options, folder, case)
        depths.append(depth)
    depth = statistics.median_low(depths)
    print(f"{case}: searches found", *depths, flush=True)
    same = [found for found in depths if 0 < depth <= 2 * found and found <= 2 * depth]
    claim(f"knee-{case}-searches", len(same) / len(depths), "within-factor-2", 0.9)
    depth = depth or DEEP
    draw = random.Random(3)
    total = min(options.samples * MEAN, options.bytes)
    mean = epoch["request_bytes"] / epoch["requests"]
    reads = os.path.join(options.folder, "reads")
    write_reads(reads, records(files, total, draw) if case == "recordio-epoch"
                else streams(files, total, round(mean / 4096) * 4096, draw))
    ours, device, deep = [], [], []
    for _ in range(options.rounds):
        _, epoch = run_iobench(options, folder, case, depth)
        ours.append(epoch["request_bytes"] / epoch["wall_s"])
        device.append(run_fio(reads, depth))
        _, epoch = run_iobench(options, folder, case, DEEP)
        deep.append(epoch["request_bytes"] / epoch["wall_s"])
    os.unlink(reads)
    print(f"{case}: depth {depth}; reads of {mean / 1024:.0f} KiB; ours {in_mib(ours)}, at "
          f"depth {DEEP} {in_mib(deep)}; device {in_mib(device)}")
    claim_ratio(f"knee-{case}", "of-device", ours, device)
    claim_ratio(f"knee-{case}-depth", f"of-depth-{DEEP}", ours, deep)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="/tmp/iobench-knee")
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--make", action="store_true", help="make the sets, measure nothing")
    parser.add_argument("--keep", action="store_true", help="do not remove the sets")
    options = parser.parse_args()
    options.bytes = 20 * 10**9 if options.long else 2 * 10**9
    options.samples = 40000
    for case in options.case or CASES:
        folder = os.path.join(options.folder, case)
        if not os.path.isdir(folder):
            make_sets(folder, case, options.bytes)
        if not options.make:
            measure(options, case, folder)
        if not options.make and not options.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
