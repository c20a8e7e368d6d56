#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of sample orders and epoch borders on a disk with few reads per second, such as a network disk.

    sudo bench/slow-disk.py border|front [--iobench build/iobench] [--folder DIR] [--records N]
                            [--rounds N] [--out DIR] [--keep]

A control group limits the disk to 1,000 reads/s and 400 MB/s, only for programs started here.
`border`: three epochs with a shuffle buffer of a quarter of the set, drained at each end and with
--overlap-epochs, in turn; counts are checked, the rows of docs/shuffle.md are printed, and --out
takes the tables that docs/results/epoch-border.gp draws. `front`: every order read cold, as
`iobench shuffle --measure` does; --out takes shuffle-front.csv and .svg.
"""
import argparse
import csv
import json
import os
import shutil
import subprocess

READS_PER_S, BYTES_PER_S = 1000, 400 * 10**6
V1, V2 = "/sys/fs/cgroup/blkio", "/sys/fs/cgroup"
ORDERS = ["epoch", "none", "block:2MiB", "buffer:{16}", "mxnet-chunk:4MiB", "tfdata:{16}", "dali:64",
          "webdataset:200", "ffcv:32,page=1MiB", "corgipile:0.1,block=1MiB", "py1s", "py1br:{4}",
          "py1e:{4}"]


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def make_group(folder):
    """Create a group whose members read the disk beneath `folder` slowly; return its path."""
    number = os.stat(folder).st_dev
    block = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
    if os.path.exists(block + "/partition"):
        block = os.path.dirname(os.path.realpath(block))
    with open(block + "/dev", encoding="ascii") as file:
        disk = file.read().strip()
    version1 = os.path.isdir(V1)
    group = f"{V1 if version1 else V2}/iobench-slow-disk-{os.getpid()}"
    os.mkdir(group)
    if version1:
        write(group + "/blkio.throttle.read_iops_device", f"{disk} {READS_PER_S}")
        write(group + "/blkio.throttle.read_bps_device", f"{disk} {BYTES_PER_S}")
    else:
        write(group + "/io.max", f"{disk} riops={READS_PER_S} rbps={BYTES_PER_S}")
    return group


def run(group, arguments):
    done = subprocess.run(arguments, check=False, stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: write(group + "/cgroup.procs", str(os.getpid())))
    if done.returncode:
        raise SystemExit(f"slow-disk: exit status {done.returncode}: {' '.join(arguments)}")
    return done.stdout


def cut_series(path, out):
    """Extract the columns of the chart."""
    with open(path, encoding="utf-8") as file, open(out, "w", encoding="utf-8") as cut:
        cut.write("time_s,phases,read_bytes_per_s,trained_samples_per_s\n")
        begin = None
        for row in csv.DictReader(file):
            if "epoch" in row["phases"] and begin is None:
                begin = float(row["time_s"])
            if begin is not None:
                cut.write(f"{float(row['time_s']) - begin:.3f},{row['phases']},"
                          f"{float(row['read_bytes_per_s'] or 0):.0f},"
                          f"{float(row['trained_samples_per_s'] or 0):.0f}\n")


def border(options, group):
    series = os.path.join(options.folder, "series.csv")
    rows = {"drained": [], "overlapping": []}
    for _ in range(options.rounds):
        for name, more in (("drained", []), ("overlapping", ["--overlap-epochs"])):
            text = run(group, [options.iobench, "run", "--data", options.folder + "/set", "--direct",
                               "--shuffle", f"buffer:{options.records // 4}", "--decode", "none",
                               "--trainer", "replay:rate=3000", "-B", "64", "--epochs", "3",
                               "--runs", "1", "--drop-caches", "--no-calibrate", "--series", series,
                               "--json", "/dev/stdout", *more])
            job = json.loads(text[text.index("{"):text.rindex("}") + 1])["jobs"][0]
            epochs = job["runs"][0]["epochs"]
            if any(epoch["samples"] != options.records for epoch in epochs):
                raise SystemExit(f"slow-disk: {name}: not each record once an epoch: {epochs}")
            rows[name].append(epochs)
            if options.out:
                cut_series(series, f"{options.out}/epoch-border-{name}.csv")
    os.remove(series)

    def texts(name, key, digits, scale=1):
        return "; ".join(", ".join(f"{epoch[key] * scale:,.{digits}f}" for epoch in epochs[1:])
                         for epochs in rows[name])
    print("| epochs 2, 3 of each round | storage idle, s | first batch, s | samples/s | AU, % |")
    print("|---|---|---|---|---|")
    for name in rows:
        print(f"| {name} | {texts(name, 'storage_idle_s', 2)} | {texts(name, 'first_batch_s', 2)} | "
              f"{texts(name, 'samples_per_s', 0)} | {texts(name, 'au_percent', 1)} |")


def front(options, group):
    share = {16: options.records // 16, 4: options.records // 4}
    orders = [order.replace("{16}", str(share[16])).replace("{4}", str(share[4]))
              for order in ORDERS]
    files = []
    if options.out:
        files = ["--csv", options.out + "/shuffle-front.csv", "--plot",
                 options.out + "/shuffle-front.svg"]
    print(run(group, [options.iobench, "shuffle", *orders, "--data", options.folder + "/set",
                      "--measure", "--direct", "--runs", str(options.rounds), "--batch-size", "64",
                      "--labels", "sorted", "--classes", "100", *files]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["border", "front"])
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder", default="/var/tmp/iobench-slow-disk")
    parser.add_argument("--records", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--out")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.records = options.records or {"border": 16000, "front": 8000}[options.what]
    options.rounds = options.rounds or {"border": 2, "front": 3}[options.what]
    os.makedirs(options.folder, exist_ok=True)
    if not os.path.isdir(options.folder + "/set"):
        subprocess.run([options.iobench, "pack", f"synthetic:count={options.records}",
                        options.folder + "/set", "--format", "recordio", "--shards", "32"], check=True,
                       stdout=subprocess.DEVNULL)
    group = make_group(options.folder)
    try:
        {"border": border, "front": front}[options.what](options, group)
    finally:
        os.rmdir(group)
        if not options.keep:
            shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
