#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What iobench reports to users about a device and a network with known rates.

    bench/telemetry_rates.py --iobench build/iobench [--folder DIR] [--rates 50,200,500]
                             [--seconds 10] [--no-network]

Device: a control group may read 50, 200, 500 MB/s of a device (blkio or io controller; root): of a
loop device of its own over 1 GiB of memory, which nobody else uses, or of the one beneath DIR.
There `iobench run` reads with O_DIRECT; over the same seconds `iobench monitor` and, when sysstat
is installed, iostat watch the device. The reference is the limit; the block layer's count for the
group in those seconds is listed too. The figures of monitor, series and iostat include other
readers of a device beneath DIR: measure there on an idle machine.

Network: two network namespaces and a pair of interfaces between them, 400 Mbit/s by a token bucket;
one sends by TCP, in the other `iobench monitor` watches, tcpdump keeps every packet (root, iproute2,
tcpdump), and the far interface counts what it sent.
"""
import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20


def claim(name, off, goal):
    print(f"claim {name} {off:.2f} % off goal <={goal:g} {'ok' if off <= goal else 'short'}",
          flush=True)


def off(figure, truth):
    return abs(figure / truth - 1) * 100 if truth else 100.0


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


# ---- a device of known rate ----


def device_of(folder):
    """Return the number and name of the disk beneath a folder."""
    number = os.stat(folder).st_dev
    path = os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if os.path.exists(path + "/partition"):
        path = os.path.dirname(path)
    with open(path + "/dev") as file:
        return file.read().strip(), os.path.basename(path)


class Group:
    """A control group that limits its processes' reads from a device to a rate in bytes/s."""

    def __init__(self, device, rate):
        self.device = device
        self.version1 = os.path.isdir("/sys/fs/cgroup/blkio")
        self.path = f"/sys/fs/cgroup/{'blkio/' if self.version1 else ''}iobench-rates-{os.getpid()}"
        if not self.version1:
            write("/sys/fs/cgroup/cgroup.subtree_control", "+io")
        os.mkdir(self.path)
        if self.version1:
            write(self.path + "/blkio.throttle.read_bps_device", f"{device} {rate}")
        else:
            write(self.path + "/io.max", f"{device} rbps={rate}")

    def enter(self):
        write(self.path + "/cgroup.procs", str(os.getpid()))

    def bytes(self):
        name = "blkio.throttle.io_service_bytes" if self.version1 else "io.stat"
        with open(f"{self.path}/{name}") as file:
            for line in file:
                words = line.split()
                if words[0] != self.device:
                    continue
                if self.version1 and words[1] == "Read":
                    return int(words[2])
                for word in words[1:]:
                    if word.startswith("rbytes="):
                        return int(word[7:])
        return 0

    def close(self):
        for _ in range(100):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.05)


def make_set(folder, files):
    os.makedirs(folder + "/class")
    block = os.urandom(MIB)
    for i in range(files):
        with open(f"{folder}/class/{i}.jpg", "wb") as file:
            file.write(struct.pack("<Q", i) + block[8:])
    subprocess.check_call(["sync", "--file-system", folder])


class Disk:
    """A file system on a loop device over a file in memory."""

    def __init__(self, mebibytes):
        self.image = tempfile.NamedTemporaryFile(prefix="iobench-rates-", dir="/dev/shm")
        self.image.truncate(mebibytes * MIB)
        subprocess.check_call(["mkfs.ext4", "-q", "-F", self.image.name])
        self.device = subprocess.check_output(
            ["losetup", "--find", "--show", self.image.name]).decode().strip()
        self.folder = tempfile.mkdtemp(prefix="iobench-rates-")
        try:
            subprocess.check_call(["mount", self.device, self.folder])
        except subprocess.CalledProcessError:
            self.close()
            raise

    def close(self):
        subprocess.call(["umount", self.folder], stderr=subprocess.DEVNULL)
        subprocess.call(["losetup", "--detach", self.device])
        os.rmdir(self.folder)
        self.image.close()


def mean_of_lines(text, seconds):
    """Return storage bytes/s over all lines of a monitor except the first."""
    area = time_s = before = 0
    for line in text.splitlines():
        row = json.loads(line)
        length = row.get("interval_s", row["elapsed_s"] - before)
        if before and time_s < seconds:
            area += row["storage_read_bytes_per_s"] * length
            time_s += length
        before = row["elapsed_s"]
    return area / time_s


def mean_of_series(series, column, seconds):
    """Return the mean over the given seconds, starting one second into the first epoch."""
    at = series["columns"].index(column)
    start = next(p["from_s"] for p in series["phases"] if p["phase"] == "epoch") + 1
    area = time_s = before = 0
    for row in series["rows"]:
        if before >= start and time_s < seconds and row[at] is not None:
            area += row[at] * (row[0] - before)
            time_s += row[0] - before
        before = row[0]
    return area / time_s


def measure_rate(options, folder, files, mb_per_s):
    device, name = device_of(folder)
    rate = mb_per_s * 1000000
    samples = min(files, -(-rate * 5 // 2 // MIB))  # of an epoch: 2.5 s
    epochs = 1 - (-rate * (options.seconds + 3) // (samples * MIB))
    result = folder + "/result.json"
    group = Group(device, rate)
    try:
        run = subprocess.Popen(
            [options.iobench, "run", "--data", folder + "/set", "--format", "files", "--decode",
             "none", "--no-crc", "--direct", "--runs", "1", "--epochs", str(epochs),
             "--limit-samples", str(samples), "--no-calibrate", "--iodepth", "8",
             "--json", result],
            preexec_fn=group.enter, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(2)
        monitor = subprocess.Popen(
            [options.iobench, "monitor", "--json", "--probes", "disk,cpu", "--count",
             str(options.seconds + 1), folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        iostat = shutil.which("iostat") and subprocess.Popen(
            ["iostat", "-d", "-y", "-k", str(options.seconds), "1", name],
            env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.PIPE)
        start, before = time.monotonic(), group.bytes()
        observed = iostat.communicate()[0].decode() if iostat else time.sleep(options.seconds) or ""
        allowed = (group.bytes() - before) / (time.monotonic() - start)
        lines = monitor.communicate()[0].decode()
        complaints = run.communicate()[1].decode()
        if run.returncode:
            sys.exit("iobench run failed: " + complaints)
    finally:
        group.close()
    with open(result) as file:
        job = json.load(file)["jobs"][0]
    steady = job["runs"][0]["epochs"][1:]  # the first one includes the burst that a limit begins with
    wall = sum(epoch["wall_s"] for epoch in steady)
    figures = {
        "run": sum(epoch["record_bytes"] for epoch in steady) / wall,
        "run_device": sum(epoch["device_read_bytes"] for epoch in steady) / wall,
        "series": mean_of_series(job["series"], "read_bytes_per_s", options.seconds),
        "series_origin": mean_of_series(job["series"], "from_local_bytes_per_s", options.seconds),
        "series_disk": mean_of_series(job["series"], "storage_read_bytes_per_s", options.seconds),
        "monitor": mean_of_lines(lines, options.seconds),
    }
    print(f"{mb_per_s} MB/s allowed, {allowed / 1e6:.2f} let through: "
          + ", ".join(f"{key} {value / 1e6:.2f}" for key, value in figures.items()))
    worst = max(figures, key=lambda key: off(figures[key], rate))
    print(f"  the figure furthest off is {worst}")
    claim(f"telemetry_figures_{mb_per_s}", off(figures[worst], rate), 1)
    for line in observed.splitlines():
        words = line.split()
        if words and words[0] == name:
            theirs = float(words[5]) * 1024 / options.seconds
            print(f"  iostat {theirs / 1e6:.2f} MB/s")
            claim(f"telemetry_iostat_{mb_per_s}", off(figures["monitor"], theirs), 2)


# ---- a network ----

SEND = """
import socket, sys, time
s = socket.create_connection(("10.99.1.2", 7777)); end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end: s.sendall(bytes(1 << 16))
"""
TAKE = """
import socket
listener = socket.create_server(("10.99.1.2", 7777)); print("ready", flush=True)
s, _ = listener.accept()
while s.recv(1 << 20): pass
"""


def captured_bytes(path):
    """Return the sum of the lengths of all packets in a capture file."""
    total = 0
    with open(path, "rb") as file:
        order = "<" if file.read(24)[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
        while len(head := file.read(16)) == 16:
            _, _, kept, length = struct.unpack(order + "4I", head)
            file.seek(kept, os.SEEK_CUR)
            total += length
    return total


def interface_bytes(space, interface, way):
    text = subprocess.check_output(["ip", "-n", space, "-j", "-s", "link", "show", interface])
    return json.loads(text)[0]["stats64"][way]["bytes"]


def measure_network(options, folder):
    a, b = f"ioba{os.getpid()}", f"iobb{os.getpid()}"
    inside = ["ip", "netns", "exec", b]
    capture = folder + "/capture"
    running = []
    try:
        for words in (f"netns add {a}", f"netns add {b}",
                      f"link add va netns {a} type veth peer name vb netns {b}",
                      f"-n {a} addr add 10.99.1.1/24 dev va", f"-n {a} link set va up",
                      f"-n {b} addr add 10.99.1.2/24 dev vb", f"-n {b} link set vb up"):
            subprocess.check_call(["ip"] + words.split())
        subprocess.check_call(["tc", "-n", a, "qdisc", "add", "dev", "va", "root", "tbf", "rate",
                               "400mbit", "burst", "256k", "latency", "100ms"])
        time.sleep(1)
        taker = subprocess.Popen(inside + [sys.executable, "-c", TAKE], stdout=subprocess.PIPE)
        running.append(taker)
        taker.stdout.readline()
        packets = subprocess.Popen(inside + ["tcpdump", "-i", "vb", "-Q", "in", "-s", "64", "-B",
                                             "65536", "-w", capture], stderr=subprocess.PIPE)
        running.append(packets)
        packets.stderr.readline()
        sent = interface_bytes(a, "va", "tx")
        monitor = subprocess.Popen(inside + [options.iobench, "monitor", "--json", "--probes",
                                             "net,cpu", "--count", str(options.seconds + 4)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        running.append(monitor)
        time.sleep(1)
        subprocess.check_call(["ip", "netns", "exec", a, sys.executable, "-c", SEND,
                               str(options.seconds)])
        rows = [json.loads(line) for line in monitor.communicate()[0].decode().splitlines()]
        sent = interface_bytes(a, "va", "tx") - sent
        packets.terminate()
        lost = [line for line in packets.communicate()[1].decode().splitlines() if "drop" in line]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
        for space in (a, b):
            subprocess.call(["ip", "netns", "delete", space])
    total = before = 0
    for row in rows:
        total += row["net_receive_bytes_per_s"] * row.get("interval_s", row["elapsed_s"] - before)
        before = row["elapsed_s"]
    seen = captured_bytes(capture)
    print(f"network: {total / 1e6:.2f} MB received by monitor, {seen / 1e6:.2f} in packets of "
          f"tcpdump ({'; '.join(lost)}), {sent / 1e6:.2f} sent by the other end")
    claim("telemetry_packets", off(total, seen), 2)
    claim("telemetry_far_end", off(total, sent), 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iobench", default="build/iobench")
    parser.add_argument("--folder")
    parser.add_argument("--rates", default="50,200,500")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--no-network", action="store_true")
    options = parser.parse_args()
    options.iobench = os.path.abspath(options.iobench)
    rates = [int(rate) for rate in options.rates.split(",") if rate]
    if os.geteuid() != 0:
        sys.exit("root alone can limit a device and make network namespaces")
    disk = None if options.folder or not rates else Disk(1024)
    try:
        with tempfile.TemporaryDirectory(
                prefix="iobench-rates-", dir=disk.folder if disk else options.folder) as folder:
            files = 850 if disk else min(2048, max(rates, default=0) * (options.seconds + 5))
            if rates:
                make_set(folder + "/set", files)
            for rate in rates:
                measure_rate(options, folder, files, rate)
    finally:
        if disk:
            disk.close()
    if not options.no_network:
        with tempfile.TemporaryDirectory(prefix="iobench-rates-") as folder:
            measure_network(options, folder)


main()
