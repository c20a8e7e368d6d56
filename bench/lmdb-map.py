#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LMDB from a cold cache in random order: its extents through io_uring, against liblmdb's own map.

    bench/lmdb-map.py [--iobench build/iobench] [--folder DIR] [--images N] [--rounds N]

One database of generated images; every image is read in random order, computing its CRC-32C. The
map is used as Caffe does (the kernel reads ahead) and as LSUN does (MDB_NORDAHEAD); one thread
faults in either map, as one of their reading threads does. The page cache is dropped before each
pass and verified cold (root). Rounds alternate; figures are medians.

Without read-ahead each page is a separate read and nothing is reused, so part of the images
suffices.

Three times: with a database that fits into memory, where pages read ahead are used later, with the
disk's own read-ahead and with Linux's default of 128 KiB (the effect of one page fault); and under
--memory-limit of a quarter of it, as when a database is larger than memory. If it fits, uring also
reads the whole order sorted by offset (--window of all images, and the --memory needed), with the
CRC-32C and without it. Without it the claim is against the disk itself: fio reads the file from
front to back in the same rounds and does not touch what it has read either. No multiple of the
map's throughput can be demanded that exceeds the disk's. With the CRC the rate is lower: records
are delivered in sample order, so nearly all CRCs are computed after the last read. If it does not
fit, the claim is against the faster map.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess

READERS = {  # name: options
    "uring": ["--reader", "uring:direct=yes", "--iodepth", "32"],
    "uring buffered": ["--reader", "uring", "--iodepth", "32"],
    "liblmdb, read-ahead": ["--reader", "lmdb:readahead=yes", "--iodepth", "32"],
    "liblmdb, no read-ahead": ["--reader", "lmdb:readahead=no", "--iodepth", "32"],
}


DEFAULT_READ_AHEAD = 128  # KiB: VM_READAHEAD_PAGES of Linux


@contextlib.contextmanager
def read_ahead(folder, kib):
    """Set the read-ahead of the folder's file system inside the block. Needs root."""
    device = os.stat(folder).st_dev
    path = f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"
    with open(path, encoding="ascii") as file:
        before = file.read().strip()

    def put(value):
        with open(path, "w", encoding="ascii") as file:
            file.write(value)

    put(str(kib))
    print(f"read-ahead of {kib} KiB instead of {before}:", flush=True)
    try:
        yield
    finally:
        put(before)


def read_once(program, folder, options):
    done = subprocess.run([program, "--data", folder, "--decode", "checksum", "--shuffle", "epoch",
                           "--runs", "1", "--no-calibrate", "--drop-caches=strict", "--json", "-",
                           *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit("lmdb: " + done.stderr.strip())
    epoch = json.loads(done.stdout)["jobs"][0]["runs"][0]["epochs"][0]
    return epoch["record_bytes_per_s"] / 2**20


def read_disk(path):
    """MiB/s of fio from front to back, in reads of 1 MiB, past the page cache."""
    done = subprocess.run(["fio", "--name=disk", "--ioengine=io_uring", "--thread", "--direct=1",
                           "--fixedbufs=1", "--rw=read", "--bs=1m", "--iodepth=32",
                           f"--filename={path}", "--output-format=json"],
                          capture_output=True, text=True, check=True,
                          env=dict(os.environ, GLIBC_TUNABLES="glibc.malloc.hugetlb=1"))
    return json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"] / 2**20


def compare(options, name, readers, ours, limit):
    figures = {reader: [] for reader in readers}
    disk = []
    few = ["--limit-samples", str(max(options.images // 32, 1))]
    for _ in range(options.rounds):
        for reader, arguments in readers.items():
            slow = few if "no read-ahead" in reader else []
            figures[reader].append(read_once(options.iobench, options.folder,
                                             [*arguments, *limit, *slow]))
        if not limit:
            disk.append(read_disk(os.path.join(options.folder, "data.mdb")))
    median = {reader: statistics.median(values) for reader, values in figures.items()}
    for reader, values in figures.items():
        print(f"{name:18} {reader:25} {median[reader]:7.0f} MiB/s "
              f"({min(values):.0f} .. {max(values):.0f})")
    if disk:
        print(f"{name:18} {'disk, in order':25} {statistics.median(disk):7.0f} MiB/s "
              f"({min(disk):.0f} .. {max(disk):.0f})")
        ratio, of, goal = statistics.median(a / b for a, b in zip(figures[ours], disk)), "of-disk", 0.95
    else:
        best = max(figure for reader, figure in median.items() if reader.startswith("liblmdb"))
        ratio, of, goal = median[ours] / best, "x-liblmdb", 3
    print(f"claim lmdb-cold-random-{name} {ratio:.2f} {of} goal >={goal:g} "
          f"{'ok' if ratio >= goal else 'short'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="/tmp/iobench-lmdb")
    parser.add_argument("--images", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.folder, "data.mdb")):
        subprocess.run([options.iobench, "pack", f"synthetic:count={options.images}",
                        options.folder, "--format", "lmdb"], check=True, stdout=subprocess.DEVNULL)
    size = os.path.getsize(os.path.join(options.folder, "data.mdb"))
    limited = ["--memory-limit", str(size // 4), "--limit-samples", str(options.images // 8)]
    whole = [*READERS["uring"], "--window", str(options.images), "--memory", str(size * 56 // 10)]
    fits = {"uring, all sorted, no CRC": [*whole, "--decode", "none"], "uring, all sorted": whole, **READERS}
    compare(options, "fits", fits, "uring, all sorted, no CRC", [])
    with read_ahead(options.folder, DEFAULT_READ_AHEAD):
        compare(options, f"fits-{DEFAULT_READ_AHEAD}k", fits, "uring, all sorted, no CRC", [])
    compare(options, "larger-than-memory", READERS, "uring", limited)


if __name__ == "__main__":
    main()
