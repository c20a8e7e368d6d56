#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wire_over_time.py RESULT.json NAME NODE=LINES...: output of iobench monitor on each node during
`iobench train`, as one table, NAME.csv; second 0 is the start of the first epoch. Prints the sums
of each epoch, in MB; epoch 0 is the time before the first. Epochs begin on each node when its own
ranks begin them; lines that span several bins or epochs are split."""
import csv
import json
import sys

MB = 1e-6
BIN_S = 2  # some steps of the training
KEYS = "nfs_read_bytes_per_s", "net_receive_bytes_per_s", "net_transmit_bytes_per_s"


def add(sums, key, line, share):
    """Add seconds, and MB of files from the server, received and sent."""
    total = sums.setdefault(key, [0, 0, 0, 0])
    seconds = line["interval_s"] * share
    total[0] += seconds
    for at, key in enumerate(KEYS, 1):
        total[at] += (line[key] or 0) * MB * seconds


def shares(line, borders):
    """Yield (part, share of the line in it); part 0 is before the first border."""
    end = line["unix_time_s"]
    begin = end - line["interval_s"]
    cuts = [begin, *(border for border in borders if begin < border < end), end]
    for left, right in zip(cuts, cuts[1:]):
        yield (sum(border <= left for border in borders),
               (right - left) / (end - begin) if end > begin else 1)  # the last may be a moment


def begins_of(series, node):
    """Times of day, on the node's clock, at which its epochs began."""
    own = series["nodes"][node]
    return [series["start_unix_s"] + own["clock_offset_s"] + phase["from_s"]
            for phase in own["phases"] if phase["phase"] == "epoch"]


def main(words):
    with open(words[0]) as file:
        series = json.load(file)["jobs"][0]["series"]
    sums = csv.writer(sys.stdout, lineterminator="\n")
    sums.writerow(["node", "epoch", "from_server_MB", "received_MB", "sent_MB",
                   "received_minus_sent_MB"])
    with open(words[1] + ".csv", "w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["node", "time_s", "epoch", "storage_MB_per_s", "receive_MB_per_s",
                        "send_MB_per_s"])
        for number, word in enumerate(words[2:]):
            node, path = word.split("=", 1)
            begins = begins_of(series, number)
            with open(path) as lines:
                lines = [json.loads(line) for line in lines]
            ends = [begins[0] + BIN_S * i for i in
                    range(int((lines[-1]["unix_time_s"] - begins[0]) / BIN_S) + 2)]
            bins, epochs = {}, {}
            for line in lines:
                for part, share in shares(line, ends):
                    add(bins, part, line, share)
                for part, share in shares(line, begins):
                    add(epochs, part, line, share)
            bins.pop(0, None)
            for part, (seconds, *values) in sorted(bins.items()):
                begin = (part - 1) * BIN_S
                epoch = sum(other - begins[0] <= begin for other in begins)
                table.writerow([node, begin + BIN_S, epoch,
                                *(round(value / seconds, 2) for value in values)])
            for epoch, (_, storage, receive, send) in sorted(epochs.items()):
                sums.writerow([node, epoch, *(round(value, 2) for value in
                                              (storage, receive, send, receive - send))])


if __name__ == "__main__":
    main(sys.argv[1:])
