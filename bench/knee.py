#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the whole pipeline give what the device gives at its knee?

    bench/knee.py [--long] [--iobench build/iobench] [--folder DIR] [--case NAME] [--rounds N]

Two sets of records as large as ImageNet's: 1,024 TFRecord shards in tf.data's order, and one
RecordIO file (--long: of 20 GB) in random order of its records; both O_DIRECT. `--iodepth auto`
finds the depth at which the device stops growing. At that depth iobench and fio (io_uring, the same
depth, random reads as large as iobench's were) read in turn; medians of the rounds.
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
SHARDS = 1024


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
    """Records of up to total bytes; nobody looks into them here, so their CRC is not made."""
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


CASES = {"tfdata-1024": ["--format", "shards", "--shuffle", "tfdata"],
         "recordio-epoch": ["--format", "recordio", "--shuffle", "epoch"]}


def run_iobench(options, folder, case, depth):
    arguments = [options.iobench, "--data", folder, "--reader", "uring:direct=yes", "--decode",
                 "none", "--no-crc", "--runs", "1", "--no-calibrate", "--json", "-", "--iodepth",
                 str(depth), "--limit-samples", str(options.samples), *CASES[case]]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit("knee: " + done.stderr.strip())
    job = json.loads(done.stdout)["jobs"][0]
    return job["engine"]["iodepth"], job["runs"][0]["epochs"][0]


def run_fio(path, depth, block, total):
    split = (":".join(f"{kib}k/{percent}" for kib, percent in SIZES.items())
             if block is None else f"{block}/100")
    done = subprocess.run(["fio", "--name=knee", "--ioengine=io_uring", "--thread", "--direct=1",
                           "--registerfiles=1", "--fixedbufs=1", "--rw=randread", "--norandommap",
                           "--randrepeat=0", "--ba=4k", f"--bssplit={split}",
                           f"--iodepth={depth}", f"--filename={path}", f"--io_size={total}",
                           "--output-format=json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"]


def measure(options, case):
    """fio reads one large file: the RecordIO file, or as many bytes in one file as the shards."""
    folder = os.path.join(options.folder, case)
    if not os.path.isdir(folder):
        make_sets(folder, case, options.bytes)
    single = os.path.join(options.folder, "recordio-epoch")
    if not os.path.isdir(single):
        make_sets(single, "recordio-epoch", options.bytes)
    depth, _ = run_iobench(options, folder, case, "auto")
    if not depth:
        print(f"{case}: no knee was found; 32 is taken")
        depth = 32
    ours, theirs = [], []
    for _ in range(options.rounds):
        _, epoch = run_iobench(options, folder, case, depth)
        ours.append(epoch["request_bytes"] / epoch["wall_s"])
        mean = epoch["request_bytes"] / epoch["requests"]
        block = None if case == "recordio-epoch" else round(mean / 4096) * 4096
        theirs.append(run_fio(single + "/train.rec", depth, block, int(epoch["request_bytes"])))
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    print(f"{case}: knee at depth {depth}; ours {statistics.median(ours) / 2**20:.0f} MiB/s "
          f"({min(ours) / 2**20:.0f} .. {max(ours) / 2**20:.0f}), reads of {mean / 1024:.0f} KiB; "
          f"device {statistics.median(theirs) / 2**20:.0f} MiB/s "
          f"({min(theirs) / 2**20:.0f} .. {max(theirs) / 2**20:.0f})")
    print(f"claim knee-{case} {ratio:.3f} of-device goal >=0.97 "
          f"{'ok' if ratio >= 0.97 else 'short'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="/tmp/iobench-knee")
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="do not remove the sets")
    options = parser.parse_args()
    options.bytes = 20 * 10**9 if options.long else 2 * 10**9
    options.samples = 40000 if options.long else 15000
    for case in options.case or CASES:
        measure(options, case)
    for case in [] if options.keep else CASES:  # what else lies in the folder is not ours
        shutil.rmtree(os.path.join(options.folder, case), ignore_errors=True)


if __name__ == "__main__":
    main()
