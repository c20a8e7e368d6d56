#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""iobench net against other programs that measure the same.

    bench/net.py --iobench build/iobench --reference build/bench/net_mpi [--rounds 5] [--seconds 0.2]
                 [--rate 400mbit] [--only mpi,tcp,shaped]

mpi: latency (8 B) and bandwidth (64 KiB, 1 MiB) of two ranks, against a reference that does with
blocking calls what the OSU micro-benchmarks do. tcp: bandwidth over the loopback against iperf3, both
with messages of 128 KiB. shaped: the same between two network namespaces with a link of --rate (root,
iproute2, iperf3, Open MPI).

The programs take turns, so that both see the same machine; a claim is the median of the ratios. The
interval is that of the rounds. Needs an idle machine of at least 2 CPUs.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
PORT = "5987"


def claim(name, ratios, goal):
    off = abs(statistics.median(ratios) - 1) * 100
    print(f"claim {name.replace(' ', '_')} {off:.1f} % off goal <={goal:g} {'ok' if off <= goal else 'short'} "
          f"(ratio {statistics.median(ratios):.3f}, {min(ratios):.3f} .. {max(ratios):.3f})", flush=True)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=600).stdout


def net(options, launch, size, *more):
    """Return the row of one message size of `iobench net`."""
    text = output(*launch, options.iobench, "net", "--from", size, "--to", size, "--pairs", "none",
                  "--no-collectives", "--repeat-time", f"{options.seconds}s", "--json", "-", *more)
    return json.loads(text)["messages"]["sizes"][0]


def against_mpi(options):
    launch = ["mpirun", "-n", "2", "--oversubscribe"]
    for size, bytes_, key, goal in (("8", 8, "latency_s", 5), ("64KiB", 65536, "forth_bytes_per_s", 5),
                                    ("1MiB", 1 << 20, "forth_bytes_per_s", 5)):
        ratios = []
        for _ in range(options.rounds):
            latency, rate = map(float, output(*launch, options.reference, str(bytes_),
                                              str(options.seconds)).split())
            row = net(options, launch, size)
            ratios.append(row[key] / (latency if key == "latency_s" else rate))
        claim(f"net mpi {key} {size}", ratios, goal)


def iperf(server, prefix=()):
    text = output(*prefix, "iperf3", "-c", server, "-p", PORT, "-t", "2", "-O", "1", "-J")
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8


class Server:
    def __init__(self, prefix=()):
        self.process = subprocess.Popen([*prefix, "iperf3", "-s", "-p", PORT, "--forceflush"], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        while "listening" not in self.process.stdout.readline():
            if self.process.poll() is not None:
                sys.exit("net.py: iperf3 does not start")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def compare_tcp(options, name, launch, server, at_server=(), at_client=()):
    ratios = []
    with Server(at_server):
        for _ in range(options.rounds):
            reference = iperf(server, at_client)
            ratios.append(net(options, launch, "128KiB", "--transport", "tcp")["back_bytes_per_s"] / reference)
    claim(name, ratios, 5)


def shaped(options):
    ident = f"iobn{os.getpid() % 10000}"
    subnet = "198.18.251"
    folder = tempfile.mkdtemp(prefix="iobench-net-")

    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    try:
        ip("link", "add", ident, "type", "bridge")
        ip("addr", "add", f"{subnet}.254/24", "dev", ident)
        ip("link", "set", ident, "up")
        for host in "12":
            name, wire = f"{ident}-{host}", f"v{host}{ident}"
            ip("netns", "add", name)
            ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", wire, "master", ident, "up")
            ip("-n", name, "addr", "add", f"{subnet}.{host}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", options.rate,
                            "burst", "256k", "latency", "100ms"], check=True)
        agent = os.path.join(folder, "agent")
        with open(agent, "w") as file:
            file.write(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do case $1 in -l | -p | -o) shift ;; esac; shift; done
host=${{1##*.}}
shift
exec ip netns exec {ident}-$host unshare -u -m sh -c \\
    "hostname host$host; mount -t tmpfs tmpfs /dev/shm; exec sh -c \\"\\$*\\"" sh "$@"
""")
        os.chmod(agent, 0o755)
        launch = ["mpirun", "-n", "2", "--host", f"{subnet}.1:1,{subnet}.2:1", "--mca", "plm_rsh_agent", agent,
                  "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", f"{subnet}.0/24",
                  "--mca", "oob_tcp_if_include", f"{subnet}.0/24"]
        compare_tcp(options, f"net tcp {options.rate}", launch, f"{subnet}.1",
                    ["ip", "netns", "exec", f"{ident}-1"], ["ip", "netns", "exec", f"{ident}-2"])
    finally:
        for host in "12":
            subprocess.run(["ip", "netns", "del", f"{ident}-{host}"], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", ident], stderr=subprocess.DEVNULL)
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iobench", default="build/iobench", type=os.path.abspath)
    parser.add_argument("--reference", default="build/bench/net_mpi", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rate", default="400mbit")
    parser.add_argument("--only", default="mpi,tcp,shaped")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if "mpi" in wanted:
        against_mpi(options)
    if "tcp" in wanted:
        compare_tcp(options, "net tcp loopback", ["mpirun", "-n", "2", "--oversubscribe"], "127.0.0.1")
    if "shaped" in wanted:
        shaped(options)


if __name__ == "__main__":
    main()
