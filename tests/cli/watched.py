#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""watched.py COMMAND...: run it; kill it, and exit with 124, if it hangs, however slow the machine is.

It hangs if at no moment of a long time one of its threads was running, ready to run or waiting for a
disk, and together they used next to no CPU time: whoever waits for a CPU or a disk is not idle. One that
computes without end is ended by a limit of CPU time, which does not pass while others compute."""
import glob, os, resource, signal, subprocess, sys

INTERVAL_S = float(os.environ.get("WATCHED_INTERVAL_S", 0.5))
IDLE_SAMPLES = 600  # without a break
IDLE_CPU_S = 0.2  # in all of them: looking around now and then is no work
CPU_S = 900


def threads(session):
    """The state and CPU time in ticks of each thread of the session."""
    for path in glob.glob("/proc/[0-9]*/task/[0-9]*/stat"):
        try:
            with open(path) as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            yield fields[0], int(fields[11]) + int(fields[12])


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 10))


def watch(child):
    idle, since = 0, 0
    while True:
        try:
            status = child.wait(INTERVAL_S)
            return 128 - status if status < 0 else status
        except subprocess.TimeoutExpired:
            pass
        now = list(threads(child.pid))
        used = sum(ticks for _, ticks in now)  # less if a thread has ended
        if any(state != "S" for state, _ in now) or abs(used - since) / os.sysconf("SC_CLK_TCK") > IDLE_CPU_S:
            idle, since = 0, used
        idle += 1
        if idle > IDLE_SAMPLES:
            return 124


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    child = subprocess.Popen(sys.argv[1:], start_new_session=True, preexec_fn=limit)
    try:
        return watch(child)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


sys.exit(main())
