#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wire_over_time.py RESULT.json NAME NODE=LINES...: what iobench monitor saw on each node while
`iobench train` ran, as one table, NAME.csv; second 0 is the begin of the first epoch. On the
standard output the sums of each epoch, in MB; epoch 0 is what was before the first."""
import csv
import json
import sys

MB = 1e-6
BIN_S = 2  # some steps of the training
KEYS = "nfs_read_bytes_per_s", "net_receive_bytes_per_s", "net_transmit_bytes_per_s"


def add(sums, key, line):
    """Seconds; MB of files from the server, received, sent."""
    total = sums.setdefault(key, [0, 0, 0, 0])
    total[0] += line["interval_s"]
    for at, key in enumerate(KEYS, 1):
        total[at] += (line[key] or 0) * MB * line["interval_s"]


def main(words):
    with open(words[0]) as file:
        document = json.load(file)
    series = document["series"] if "series" in document else document["jobs"][0]["series"]
    begins = [series["start_unix_s"] + phase["from_s"]
              for phase in series["phases"] if phase["phase"] == "epoch"]
    sums = csv.writer(sys.stdout, lineterminator="\n")
    sums.writerow(["node", "epoch", "from_server_MB", "received_MB", "sent_MB",
                   "received_minus_sent_MB"])
    with open(words[1] + ".csv", "w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["node", "time_s", "epoch", "storage_MB_per_s", "receive_MB_per_s",
                        "send_MB_per_s"])
        for word in words[2:]:
            node, path = word.split("=", 1)
            with open(path) as lines:
                lines = [json.loads(line) for line in lines]
            bins, epochs = {}, {}
            for line in lines:
                middle = line["unix_time_s"] - line["interval_s"] / 2
                epoch = sum(begin <= middle for begin in begins)
                if epoch:
                    add(bins, int((middle - begins[0]) / BIN_S), line)
                add(epochs, epoch, line)
            for number, (seconds, *values) in sorted(bins.items()):
                begin = number * BIN_S
                epoch = sum(other - begins[0] <= begin for other in begins)
                table.writerow([node, begin + BIN_S, epoch,
                                *(round(value / seconds, 2) for value in values)])
            for epoch, (_, storage, receive, send) in sorted(epochs.items()):
                sums.writerow([node, epoch, *(round(value, 2) for value in
                                              (storage, receive, send, receive - send))])


if __name__ == "__main__":
    main(sys.argv[1:])
