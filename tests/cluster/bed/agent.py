#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs commands in a guest for the host and for other guests, like ssh.

agent.py serve                     in the guest: serve commands on PORT
agent.py wait ADDRESS SECONDS PROCESS
                                   wait until a guest answers, or PROCESS, its kernel, has ended
agent.py ADDRESS COMMAND...        run it there with `sh -c`; standard output, standard error and
                                   the exit status come back. Ignores options of ssh before
                                   ADDRESS, so mpirun can start its daemons with it. No keys are
                                   used: a bed's network reaches only its guests.
Each message is a type byte, a length of 4 bytes and the data.
"""
import os
import selectors
import socket
import struct
import subprocess
import sys
import time

PORT = 7000
OUTPUT, ERRORS, STATUS, COMMAND = b"oexc"


def send(channel, kind, data):
    channel.sendall(struct.pack("!BI", kind, len(data)) + data)


def receive(channel):
    """Return the next message as (kind, bytes); None at the end."""
    head = channel.recv(5, socket.MSG_WAITALL)
    if len(head) < 5:
        return None
    kind, length = struct.unpack("!BI", head)
    return kind, channel.recv(length, socket.MSG_WAITALL) if length else b""


def carry_out(channel):
    message = receive(channel)
    if not message:
        return
    child = subprocess.Popen(["sh", "-c", message[1].decode()], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, close_fds=True)
    pipes = selectors.DefaultSelector()
    pipes.register(child.stdout, selectors.EVENT_READ, OUTPUT)
    pipes.register(child.stderr, selectors.EVENT_READ, ERRORS)
    while pipes.get_map():
        for key, _ in pipes.select():
            data = os.read(key.fd, 65536)
            if data:
                send(channel, key.data, data)
            else:
                pipes.unregister(key.fileobj)
    send(channel, STATUS, struct.pack("!i", child.wait()))


def serve():
    listener = socket.create_server(("", PORT), backlog=32)
    while True:
        channel, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            if os.fork() == 0:  # orphaned: nobody has to reap it
                try:
                    carry_out(channel)
                except OSError:
                    pass  # the other side is gone
            os._exit(0)
        channel.close()
        os.wait()


def call(address, command):
    with socket.create_connection((address, PORT), timeout=30) as channel:
        channel.settimeout(None)
        send(channel, COMMAND, command.encode())
        while message := receive(channel):
            kind, data = message
            if kind == STATUS:
                status = struct.unpack("!i", data)[0]
                return status if status >= 0 else 128 - status
            out = sys.stdout if kind == OUTPUT else sys.stderr
            out.buffer.write(data)
            out.flush()
    sys.stderr.write(f"agent: {address} hung up\n")
    return 255


def lives(process):
    """An ended process stays as a zombie until its parent waits for it."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait(address, seconds, process):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return call(address, "true")
        except OSError:
            if not lives(process):
                sys.stderr.write(f"agent: the guest at {address} has ended\n")
                return 255
            time.sleep(0.1)
    sys.stderr.write(f"agent: {address} does not answer\n")
    return 255


def main(words):
    if words == ["serve"]:
        return serve()
    if len(words) == 4 and words[0] == "wait":
        return wait(words[1], float(words[2]), words[3])
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in ("-l", "-p", "-o") else 1:]
    if len(words) < 2:
        sys.stderr.write(__doc__)
        return 2
    return call(words[0], " ".join(words[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
