#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench net: figures that agree with each other, a damaged byte that is caught, a stopped rank that
# ends the job with its name.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

expect 2 "$IOBENCH" net
says "needs several ranks"

# ---- 4 ranks: every part, verified ----
expect 0 mpi 4 "$IOBENCH" net --from 8 --to 32k --factor 4096 --pair-size 4k --repeats 3 --repeat-time 1ms \
    --json net.json
says "valid, 4 ranks on 1 node" "received and verified" "Messages between rank 0" "one pair at a time" \
    "bus bandwidth" "MPI"
python3 - <<'CHECK' || die "figures contradict each other: $(cat net.json)"
import json
net = json.load(open("net.json"))
assert net["schema"] == "iobench-net" and net["checksum"] and net["verified_bytes"] > 0
assert len(net["ranks"]) == 4
assert [row["bytes"] for row in net["messages"]["sizes"]] == [8, 32768]
for row in net["messages"]["sizes"]:
    for key in "latency_%ss", "forth_%sbytes_per_s", "back_%sbytes_per_s", "both_%sbytes_per_s":
        assert 0 < row[key % "low_"] <= row[key % ""] <= row[key % "high_"], (key, row)
assert len(net["collectives"]) == 10
CHECK
wide=$(printf '%s\n' "$out" | awk 'length > 80')
[ -z "$wide" ] || die "a line is too wide: $wide"

# ---- TCP by io_uring: several connections, collectives by rings ----
if grep -q '^#define HAVE_URING 1' "$CONFIG" &&
    mpi 2 "$IOBENCH" net --transport tcp:engine=uring --to 8 --pairs none --no-collectives --repeats 1 >refused 2>&1; then
    expect 0 mpi 3 "$IOBENCH" net --transport "tcp:connections=2,engine=uring" --from 8 --to 128k --factor 16384 \
        --repeats 2 --repeat-time 1ms --pairs none
    says "TCP from" "2 connections per pair" "received and verified" "all_to_all" "io_uring"
elif [ -e refused ]; then
    grep -q "transport tcp: io_uring: " refused || die "io_uring does not work: $(cat refused)"
fi
# ---- 64 ranks on one machine ----
if [ -n "${IOBENCH_LONG-}" ]; then
    for transport in mpi tcp; do
        expect 0 mpi 64 timeout 600 "$IOBENCH" net --transport $transport --to 64 --pair-size 4k --repeats 1 \
            --repeat-time 1us --rank-timeout 120s
        says "valid, 64 ranks on 1 node" "disjoint pairs at once" "all_to_all"
    done
fi

# ---- a damaged byte ----
expect 1 mpi 2 "$IOBENCH" net --repeats 2 --repeat-time 1ms --to 8 --damage 2 --pairs none --no-collectives
says "arrived damaged at byte"

# ---- a stopped rank ----
mpi 2 "$IOBENCH" net --repeats 10000 --repeat-time 100ms --rank-timeout 2s >log 2>&1 &
job=$!
while ! grep -q "measuring 2 ranks" log && kill -0 $job 2>/dev/null; do sleep 0.05; done
kill -STOP "$(last_rank $job)"
wait $job && die "a job with a silent rank succeeded" # or the job never ends
grep -q "rank 1 on $(uname -n)" log || die "nobody says that rank 1 is unresponsive: $(cat log)"
echo "messages arrive, or it is said why not"
