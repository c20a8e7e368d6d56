#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Three network namespaces stand for three hosts. One sends over a link shaped to a quarter of the
# others', another receives over one: iobench net names each, over TCP between their addresses.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

is_open_mpi || skip "these hosts are reached by options of Open MPI's launcher"
command -v tc >/dev/null || skip "tc (iproute2) is not installed"
make_hosts 3
for host in 1 2 3; do
    for side in "-n $BRIDGE-$host qdisc add dev eth0" "qdisc add dev v$host$BRIDGE"; do # out of it, into it
        rate="640mbit burst 512k"
        case $host$side in 3-n* | 2q*) rate="160mbit burst 128k" ;; esac
        # shellcheck disable=SC2086 # words
        tc $side root tbf rate $rate latency 400ms 2>/dev/null || skip "no link can be shaped here"
    done
done
expect 0 on_hosts "$IOBENCH" net --transport tcp --no-messages --no-collectives --pair-size 64k --repeats 2 \
    --repeat-time 1ms --json net.json
says "3 ranks on 3 nodes" "TCP from $NET.1" "Slow node host3 sends at most" "Slow node host2 receives at most"
python3 - <<'CHECK' || die "the wrong one is slow: $out"
import json
net = json.load(open("net.json"))
pairs = net["pairs"]
named = {(row["kind"], row.get("node")) for row in pairs["suspects"]}
assert named == {("node_sends", 2), ("node_receives", 1)}, named
# Nothing is faster than its link, headers included.
for a, row in enumerate(pairs["bytes_per_s"]):
    for b, rate in enumerate(row):
        assert a == b or rate < (24e6 if a == 2 or b == 1 else 96e6), (a, b, rate)
assert [node["host"] for node in net["series"]["nodes"]] == ["host1", "host2", "host3"]
CHECK
says "received," "sent by all nodes meanwhile"
printf '%s\n' "$out"
