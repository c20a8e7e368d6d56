#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""over_time.py NAME RESULT.json: the result of a job as one table, NAME.csv: one row per node and time bin. Second 0 is the start of the first epoch. Prints one row per node and epoch."""
import csv
import json
import sys

BIN_S = 0.2
MB = 1e-6
NODE_COLUMNS = {
    "storage_MB_per_s": (("from_fabric_bytes_per_s", "from_local_bytes_per_s"), MB),
    "receive_MB_per_s": (("net_receive_bytes_per_s",), MB),
    "send_MB_per_s": (("net_transmit_bytes_per_s",), MB),
    "system_percent": (("cpu_system_percent",), 1),
    "io_wait_percent": (("cpu_io_wait_percent",), 1),
    "page_cache_MB": (("page_cache_bytes",), MB),
}
SAMPLES = (("trained_samples_per_s",), 1)
DELIVERED = (("record_bytes_per_s",), MB)


class Node:
    """Seconds on the clock of the job's first node."""
    def __init__(self, number, series, cold):
        self.name, self.series, self.cold = f"node{number}", series, cold
        self.epochs = [p for p in series["phases"] if p["phase"] == "epoch"]

    def begin(self, epoch=0):
        return self.epochs[epoch]["from_s"]

    def end(self):
        return self.epochs[-1]["to_s"]

    def mean(self, column, begin, end):
        """Return the sum of columns over rows in the interval, weighted by overlap; None if unknown."""
        keys, factor = column
        at = [self.series["columns"].index(key) for key in keys if key in self.series["columns"]]
        area = known = 0
        row_begin = float("-inf")
        for row in self.series["rows"]:
            overlap = min(end, row[0]) - max(begin, row_begin)
            if overlap > 0 and at and all(row[place] is not None for place in at):
                area += overlap * sum(row[place] for place in at) * factor
                known += overlap
            row_begin = row[0]
        return area / known if known else None

    def epoch_at(self, time):
        return max((e for e in range(len(self.epochs)) if self.begin(e) <= time), default=0) + 1


def nodes_of(document):
    job = document["jobs"][0]
    run = job["runs"][0]
    colds = [node["cold"] for node in run.get("nodes") or [run]]
    return [Node(number, *pair) for number, pair in enumerate(
        zip(job["series"].get("nodes") or [job["series"]], colds), 1)]


def rounded(value):
    return "" if value is None else round(value, 1)


def over_time(nodes, out):
    first = min(node.begin() for node in nodes)
    last = max(node.end() for node in nodes)
    out.writerow(["node", "time_s", "epoch", "samples_per_s", *NODE_COLUMNS])
    for node in nodes:
        for number in range(int((last - first) / BIN_S) + 1):
            begin, end = first + number * BIN_S, first + (number + 1) * BIN_S
            out.writerow([node.name, round(end - first, 1), node.epoch_at((begin + end) / 2),
                          *(rounded(node.mean(column, begin, end))
                            for column in (SAMPLES, *NODE_COLUMNS.values()))])


def by_epoch(name, nodes, out):
    """An epoch lasts until the next one starts."""
    for node in nodes:
        for epoch in range(len(node.epochs)):
            begin = node.begin(epoch)
            end = node.begin(epoch + 1) if epoch + 1 < len(node.epochs) else node.end()

            def amount(column):
                return (node.mean(column, begin, end) or 0) * (end - begin)

            out.writerow([name, node.name, epoch + 1, node.cold["cache_before"],
                          round(end - begin, 2), round(amount(SAMPLES) / (end - begin), 1),
                          round(amount(DELIVERED), 1),
                          round(amount(NODE_COLUMNS["storage_MB_per_s"]), 1),
                          rounded(node.mean(NODE_COLUMNS["io_wait_percent"], begin, end))])


def main(words):
    with open(words[1]) as file:
        nodes = nodes_of(json.load(file))
    with open(words[0] + ".csv", "w") as file:
        over_time(nodes, csv.writer(file, lineterminator="\n"))
    by_epoch(words[0].rpartition("/")[2], nodes, csv.writer(sys.stdout, lineterminator="\n"))


if __name__ == "__main__":
    main(sys.argv[1:])
