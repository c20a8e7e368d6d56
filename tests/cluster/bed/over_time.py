#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""over_time.py NAME NODE=RESULT.json...: results of ranks that ran at the same time, as one table,
NAME.csv: a row a node and bin of time. Second 0 is the begin of the first epoch. On the standard
output a row a node and epoch. What a node counts is taken from its first rank, since all of them see
the same counters; samples are added up."""
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


class Rank:
    def __init__(self, word):
        self.node, path = word.split("=", 1)
        with open(path) as file:
            document = json.load(file)
        self.job = document["jobs"][0] if "jobs" in document else document
        self.series = self.job["series"]
        self.epochs = [p for p in self.series["phases"] if p["phase"] == "epoch"]

    def begin(self, epoch=0):
        return self.series["start_unix_s"] + self.epochs[epoch]["from_s"]

    def end(self):
        return self.series["start_unix_s"] + self.epochs[-1]["to_s"]

    def mean(self, column, begin, end):
        """Sum of columns over the rows that overlap the time, by how much they do; None where nothing
        is known."""
        keys, factor = column
        at = [self.series["columns"].index(key) for key in keys if key in self.series["columns"]]
        area = known = 0
        row_begin = float("-inf")
        for row in self.series["rows"]:
            row_end = row[0] + self.series["start_unix_s"]
            overlap = min(end, row_end) - max(begin, row_begin)
            if overlap > 0 and at and all(row[place] is not None for place in at):
                area += overlap * sum(row[place] for place in at) * factor
                known += overlap
            row_begin = row_end
        return area / known if known else None

    def epoch_at(self, time):
        return max((e for e in range(len(self.epochs)) if self.begin(e) <= time), default=0) + 1


def rounded(value):
    return "" if value is None else round(value, 1)


def over_time(nodes, out):
    ranks = sum(nodes.values(), [])
    first = min(rank.begin() for rank in ranks)
    last = max(rank.end() for rank in ranks)
    out.writerow(["node", "time_s", "epoch", "samples_per_s", *NODE_COLUMNS])
    for node, members in nodes.items():
        for number in range(int((last - first) / BIN_S) + 1):
            begin, end = first + number * BIN_S, first + (number + 1) * BIN_S
            samples = [rank.mean(SAMPLES, begin, end) for rank in members]
            out.writerow([node, round(end - first, 1), members[0].epoch_at((begin + end) / 2),
                          rounded(sum(value or 0 for value in samples)),
                          *(rounded(members[0].mean(column, begin, end))
                            for column in NODE_COLUMNS.values())])


def by_epoch(name, nodes, out):
    """Bytes of an epoch are those until the next begins on the node's first rank. The node was cold
    when one of its ranks found it so: the others may have looked when that one was already reading."""
    for node, members in nodes.items():
        rank = members[0]
        words = [member.job["summary"]["cache_before"] for member in members]
        before = "cold" if "cold" in words else words[0]
        for epoch in range(len(rank.epochs)):
            begin = rank.begin(epoch) if epoch else min(member.begin() for member in members)
            end = rank.begin(epoch + 1) if epoch + 1 < len(rank.epochs) else max(
                member.end() for member in members)
            results = [member.job["runs"][0]["epochs"][epoch] for member in members]
            fetched = rank.mean(NODE_COLUMNS["storage_MB_per_s"], begin, end) * (end - begin)
            wait = rank.mean(NODE_COLUMNS["io_wait_percent"], begin, end)
            out.writerow([name, node, epoch + 1, before,
                          round(end - begin, 2),
                          round(sum(result["samples_per_s"] for result in results), 1),
                          round(sum(result["record_bytes"] for result in results) * MB, 1),
                          round(fetched, 1), rounded(wait)])


def main(words):
    nodes = {}
    for rank in map(Rank, words[1:]):
        nodes.setdefault(rank.node, []).append(rank)
    with open(words[0] + ".csv", "w") as file:
        over_time(nodes, csv.writer(file, lineterminator="\n"))
    by_epoch(words[0].rpartition("/")[2], nodes, csv.writer(sys.stdout, lineterminator="\n"))


if __name__ == "__main__":
    main(sys.argv[1:])
