#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The figures of a cluster worked by hand (tests/unit/sizing_worked.c says how), as printed and as JSON.
. "$(dirname "$0")/cli.sh"

section() { # NAME KEY=VALUE...
    printf '[%s]\nsource=by hand\n' "$1"
    shift
    printf '%s\n' "$@"
}
{
    section gpu samples-per-s=100
    section network batch=50 gradient-bytes=2e9
    section data sample-bytes=1e6 samples=8000 read-bytes=5e5 amplification=1.5
    section cpu decode-core-s=0.02 load-core-s=0.004
    section node gpus=4 cores=16 cache-bytes=2e9 record-bytes=4e9 depth=64 prefetch=2 \
        storage-port-bytes-per-s=1e9 port-is-shared=1 fabric-port-bytes-per-s=5e9
    section fabric latency-s=0.01 efficiency=0.8
    section storage read-bytes-per-s=3e9 write-bytes-per-s=3e9 read-iops=4500 latency-s=0.02 \
        cache-bytes=2e9 cache-bytes-per-s=12e9 client-bytes-per-s=2e9
    section job epochs=2
    section checkpoint bytes=90e9
} >hand.ini

# 0.9 x 6 x 100 = 540 samples/s are asked; of 1.5 MB: 810 MB/s, 27% of 3 GB/s. 437 of 540 are 124%.
expect 0 "$IOBENCH" size --simulate --gpus 6 --busy 90 --draws 20 --profile hand.ini
says " on 2 x DGX H200" "Goal 540 samples/s, reached in 0% of cases" "Limit GPUs; next I/O thread, at 1.14 times that rate" \
    "Saving 45.0 s every 52,312 s, at 2.00 GB/s" "storage, bytes 810 MB/s 3.00 GB/s 27%" \
    "storage, reads/s 1,620 4,500 36%" "each node from storage 405 MB/s 621 MB/s 65%" "each node, CPU cores 6.48 16.0 40%" \
    "GPUs, samples/s 540 437 124%" "storage, as an epoch begins 1.97 GB/s -" \
    "each node, gradients 6.00 GB/s 4.00 GB/s 150%" "writes, at 1% lost to saving 14.5 MB/s 2.00 GB/s 1%" \
    "reads, at 1% lost to restores 296 kB/s -" "stopped to save, % 0.09 0.09 .. 0.09"
"$IOBENCH" size --simulate --gpus 6 --busy 90 --draws 20 --profile hand.ini --json=hand.json || die "no JSON"
python3 - <<'CHECK' || die "other figures than by hand"
import json, math
case, = json.load(open("hand.json"))["cases"]
mtbf = 54 * 86400 * 16384 / 419 / 6
step = 0.5 / 3 + 0.52
for key, value in {
    "nodes": 2, "goal_samples_per_s": 540, "goal_probability": 0, "needs_storage_bytes_per_s": 810e6,
    "needs_storage_reads_per_s": 1620, "needs_node_bytes_per_s": 405e6, "needs_node_cores": 6.48,
    "needs_fabric_bytes_per_s": 6e9, "needs_checkpoint_bytes_per_s": 90e9 * 99 ** 2 / (2 * mtbf),
    "needs_restore_bytes_per_s": 90e9 / (0.01 * mtbf), "start_bytes": 1.35e9, "start_bytes_per_s": 1.35e9 / step,
    "checkpoint_s": 45, "checkpoint_interval_s": math.sqrt(90 * mtbf),
    "checkpoint_share": 45 / (45 + math.sqrt(90 * mtbf)),
}.items():
    assert math.isclose(case[key], value, rel_tol=1e-9), (key, case[key], value)
for part, rate in {
    "GPUs": 300 / step, "storage bandwidth": 2000, "storage IOPS": 1500,
    "node's storage port": 2e9 * (1 - 0.52 / step / 2) / 1.5e6, "read latency": 3.2e9 / 1.5e6, "CPU cores": 2 / 0.0015,
    "I/O thread": 500,
}.items():
    assert math.isclose(case["rates_samples_per_s"][part], rate, rel_tol=1e-9), (part, rate)
assert (case["limit"], case["next"]) == ("GPUs", "I/O thread")
CHECK
exit 0
