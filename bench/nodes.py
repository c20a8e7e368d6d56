#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well does `iobench size --simulate` predict several nodes from one?

    sudo bench/nodes.py IOBENCH FOLDER [--nodes 1,2,4] [--link 10] [--server 25] [--samples 2000] [--runs 3]

Makes network namespaces that stand for nodes, each with a link of --link MB/s, and one NFS server (nfs-ganesha)
with a link of --server MB/s, which all share (cmd/study/nodes.sh makes them). Measures one node alone, predicts
each number of nodes from that and from the two link rates, measures each by mpirun, and prints the errors. Links
are far slower than this machine, so its other work hardly matters. `claim` lines come last. Nothing outside the
namespaces changes.
"""
import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

from predict import claim, profile_text

HERE = os.path.dirname(os.path.abspath(__file__))
MEAN_BYTES = 40000
BATCH = 32
PREFETCH = 2
WINDOW = 64
MPI = {"OMPI_MCA_orte_default_hostfile": "/run/netns/hosts",
       "OMPI_MCA_plm_rsh_agent": "sh /run/netns/agent",
       "OMPI_MCA_rmaps_base_mapping_policy": "node",
       "OMPI_MCA_hwloc_base_binding_policy": "none",
       "OMPI_MCA_oob_tcp_if_include": "198.18.0.0/24",
       "OMPI_MCA_btl_tcp_if_include": "198.18.0.0/24",
       "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Title, options, samples/s of one GPU (None: no trainer).
JOBS = (("storage alone", ["--decode", "none"], None),
        ("with JPEG decoding", ["--decode", "jpeg", "--decode-threads", "1"], None),
        ("with a GPU of 180 samples/s", ["--decode", "none"], 180),
        ("with a GPU of 120 samples/s", ["--decode", "none"], 120))


def run(*command, **settings):
    return subprocess.run(command, check=True, **settings)


def enter(arguments):
    """Go on in namespaces of this script's own."""
    if os.environ.get("IOBENCH_NODES") != "inside":
        os.environ["IOBENCH_NODES"] = "inside"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                              sys.executable, os.path.abspath(__file__), *arguments])


class Bed:
    def __init__(self, options):
        self.options = options
        self.most = max(options.nodes)
        self.server = f"node{self.most + 1}"
        run("sh", os.path.join(HERE, "../cmd/study/nodes.sh"), str(self.most + 1), str(int(options.link * 1e6)))
        rate = f"{int(options.server * 1e6)}bps"
        run("tc", "qdisc", "replace", "dev", f"link{self.most + 1}", "root", "tbf", "rate", rate, "burst", "256kb",
            "latency", "100ms")
        self.shape_server(["ip", "netns", "exec", self.server, "tc"], rate)
        with open("/run/netns/hosts", "w", encoding="ascii") as hosts:
            hosts.writelines(f"198.18.0.{i} slots=1\n" for i in range(1, self.most + 1))
        self.export()

    def shape_server(self, tc, rate):
        """A queue for each node, which may use what others leave, up to its link: hosts have fair queues. One queue
        that drops what is too much gives connections different shares, by chance."""
        link = f"{int(min(self.options.server, self.options.link) * 1e6)}bps"
        run(*tc, "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "htb")
        run(*tc, "class", "add", "dev", "eth0", "parent", "1:", "classid", "1:1", "htb", "rate", rate,
            "quantum", "3000")
        for node in range(1, self.most + 1):
            share = f"{int(self.options.server * 1e6 / self.most)}bps"
            run(*tc, "class", "add", "dev", "eth0", "parent", "1:1", "classid", f"1:{9 + node}", "htb", "rate", share,
                "ceil", link, "quantum", "3000")
            run(*tc, "filter", "add", "dev", "eth0", "protocol", "ip", "parent", "1:", "u32", "match", "ip", "dst",
                f"198.18.0.{node}", "flowid", f"1:{9 + node}")

    def export(self):
        folder = os.path.join(self.options.folder, "nodes")
        path = os.path.join(folder, "export", "set")
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            run(self.options.iobench, "pack", f"synthetic:count={self.options.samples},mean={MEAN_BYTES}", path,
                "-f", "recordio", "--shards", "4", stdout=subprocess.DEVNULL)
        for name in ("v4recov", "v4old"):
            os.makedirs(os.path.join(folder, "recovery", name), exist_ok=True)
        configuration = os.path.join(folder, "ganesha.conf")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(f"""NFS_CORE_PARAM {{ Protocols = 3,4; Enable_NLM = false; Enable_RQUOTA = false; MNT_Port = 12048; }}
NFSV4 {{ Graceless = true; RecoveryBackend = fs; RecoveryRoot = {folder}/recovery; Only_Numeric_Owners = true; }}
EXPORT_DEFAULTS {{ Access_Type = RO; Squash = No_Root_Squash; SecType = sys; Protocols = 3,4; Transports = TCP; }}
EXPORT {{ Export_Id = 7; Path = {folder}/export; Pseudo = /export; FSAL {{ Name = VFS; }} }}
""")
        # The kernel may share /run with services of this machine: the server needs sockets of its own there.
        script = ("mount -t tmpfs none /run && mkdir /run/rpcbind && rpcbind -w -f & sleep 1; "
                  f"exec ganesha.nfsd -F -f {configuration} -L {folder}/log -p {folder}/pid -N NIV_EVENT")
        with open(os.path.join(folder, "server.out"), "w", encoding="utf-8") as out:
            subprocess.Popen(["ip", "netns", "exec", self.server, "unshare", "--mount", "sh", "-c", script],
                             stdout=out, stderr=out)
        end = time.monotonic() + 120
        listening = ["ip", "netns", "exec", self.server, "ss", "-ltnH"]
        while ":2049 " not in run(*listening, stdout=subprocess.PIPE, text=True).stdout:
            if time.monotonic() > end:
                sys.exit(f"the NFS server does not start: see {folder}/log")
            time.sleep(0.2)
        self.data = f"nfs://198.18.0.{self.most + 1}{folder}/export/set"

    def measure(self, nodes, arguments, runs):
        done = run("mpirun", "-n", str(nodes), self.options.iobench, "run", "--data", self.data, "--runs",
                   str(runs), "--batch-size", str(BATCH), "--prefetch", str(PREFETCH), "--memory", "64MiB", "--window", str(WINDOW),
                   *arguments, "--json", "-", "--no-calibrate", "--sample-interval", "none",
                   stdout=subprocess.PIPE, env={**os.environ, **MPI})
        return json.loads(done.stdout)["jobs"][0]


def predict(options, bed, one, decode_s, gpu, nodes):
    """one: bytes/s of one node alone. The server's protocols cost the same share of its link. The nodes share this
    machine's cores."""
    record = bed.record
    sections = {
        "gpu": {"samples-per-s": gpu or 1e9},
        "network": {"batch": BATCH, "gradient-bytes": 0},
        "data": {"sample-bytes": record, "samples": options.samples, "read-bytes": record, "amplification": 1},
        "cpu": {"decode-core-s": decode_s, "load-core-s": 0},
        "node": {"gpus": 1, "cores": os.cpu_count() / nodes, "decode-threads": 1, "prefetch": PREFETCH,
                 "record-bytes": 64 * 1048576, "cache-bytes": 0, "storage-port-bytes-per-s": 0,
                 "fabric-port-bytes-per-s": 0},
        "storage": {"scope": "job", "read-bytes-per-s": one * options.server / options.link,
                    "client-bytes-per-s": one, "read-iops": 0, "latency-s": 0, "latency-cv": 0},
        "job": {"epochs": 1, "window-samples": WINDOW},
    }
    path = os.path.join(options.folder, "nodes.ini")
    with open(path, "w", encoding="utf-8") as file:
        file.write(profile_text(sections, "bench/nodes.py"))
    done = run(options.iobench, "size", "--simulate", "--gpus", str(nodes), "--profile", path, "--draws", "1",
               "--json", stdout=subprocess.PIPE)
    return json.loads(done.stdout)["cases"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("iobench")
    parser.add_argument("folder")
    parser.add_argument("--nodes", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--link", type=float, default=10, help="MB/s of each node")
    parser.add_argument("--server", type=float, default=25, help="MB/s of the server")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    options.iobench, options.folder = os.path.abspath(options.iobench), os.path.abspath(options.folder)
    missing = [name for name in ("ip", "tc", "ss", "mpirun", "rpcbind", "ganesha.nfsd") if not shutil.which(name)]
    if missing or os.geteuid() != 0:
        print(f"skipped: needs root and {', '.join(missing) or 'nothing else'}")
        sys.exit(77)
    enter(sys.argv[1:])
    bed = Bed(options)
    profile = os.path.join(options.folder, "one.ini")
    one = bed.measure(1, ["--decode", "none"], options.runs)
    bed.measure(1, ["--decode", "jpeg", "--decode-threads", "1", "--profile", profile], 1)
    bed.record = one["dataset"]["mean_record_bytes"]
    steady = one["summary"]["steady_samples_per_s"] * bed.record
    with open(profile, encoding="utf-8") as file:
        decode_s = float(re.search(r"^decode-core-s=(\S+)", file.read(), re.M)[1])
    print(f"one node alone: {steady / 1e6:.3f} MB/s of its link of {options.link:g} MB/s; decodes in "
          f"{1e6 * decode_s:.0f} us\n| job | nodes | measured | predicted | error | limit |\n|---|---|---|---|---|---|")
    errors = []
    for title, arguments, gpu in JOBS:
        for nodes in options.nodes:
            trainer = ["--trainer", f"replay:rate={gpu}"] if gpu else []
            rate = bed.measure(nodes, arguments + trainer, options.runs)["summary"]["samples_per_s"]
            case = predict(options, bed, steady, decode_s if "jpeg" in arguments else 0, gpu, nodes)
            error = 100 * (case["stated_samples_per_s"] / rate - 1)
            errors.append(abs(error) if math.isfinite(error) else math.inf)
            print(f"| {title} | {nodes} | {rate:.1f} | {case['stated_samples_per_s']:.1f} | {error:+.1f}% | "
                  f"{case['limit']} |", flush=True)
    sys.exit(not claim("prediction-of-nodes-worst-error", max(errors), 10))


if __name__ == "__main__":
    main()
