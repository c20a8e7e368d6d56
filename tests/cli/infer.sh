#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Inference over a data set: every sample once per batch size, the same predictions for all of them,
# and the accuracy of the training's evaluation.
. "$(dirname "$0")/cli.sh"

expect 0 "$IOBENCH" pack synthetic:count=61,classes=3,mean=6k,seed=5 set
LENET="--network lenet --size 32 --classes 3 --data set --decode-threads 1 --compute-threads 1"
# shellcheck disable=SC2086 # words without blanks
expect 0 "$IOBENCH" train $LENET --eval-data set --batch-size 20 --lr 0.001 --checkpoint learnt \
    --csv learnt.csv
infer() { # OPTION...
    # shellcheck disable=SC2086 # words without blanks
    "$IOBENCH" infer $LENET "$@"
}

expect 0 infer --checkpoint learnt --batch-size 1,7,64 --json infer.json
column() { sed "/\"dataset\": {/,/}/d" infer.json | grep -o "\"$1\": [^,}]*" | sed 's/.*: //' | tr '\n' ' '; }
[ "$(column samples)" = "61 61 61 " ] || die "not every sample once: $(column samples)"
[ "$(column labelled)" = "61 61 61 " ] || die "labels are missing: $(column labelled)"
[ "$(column batches)" = "61 8 1 " ] || die "other batches: $(column batches)"
# Column 6 of the curve is the evaluation's top-1, over the same images and weights.
evaluated=$(awk -F, 'END { print $6 }' learnt.csv)
for top1 in $(column top1); do
    awk "BEGIN { exit !($top1 - $evaluated < 1e-6 && $evaluated - $top1 < 1e-6) }" ||
        die "top-1 is $top1 here and $evaluated in the training"
done

# What a pass cannot begin with ends it.
expect 1 infer --checkpoint learnt --batch-size 7 --memory 64k
says "needs at least" "--memory allows 64.00 KiB"

# A view that is named holds here, too: with weights that stay as they are, other pixels have another loss.
loss_of() { # DECODER
    # shellcheck disable=SC2086 # words without blanks
    expect 0 "$IOBENCH" train $LENET --eval-data set --batch-size 20 --lr 1e-30 --decode "$1" --csv view.csv
    awk -F, 'END { print $5 }' view.csv
}
centre=$(loss_of jpeg) || die "$centre"
[ "$(loss_of jpeg:view=evaluate)" = "$centre" ] || die "evaluation takes no centre crop"
[ "$(loss_of jpeg:view=whole)" != "$centre" ] || die "view=whole is overridden in evaluation"

# Caches are used as they are, and the share from storage is told.
if "${IOBENCH%/*}/cachectl/cachectl" drop set >/dev/null 2>&1; then
    expect 0 infer --batch-size 7 --json infer.json
    says "% of the bytes of the first pass"
    awk "BEGIN { exit !($(column storage_percent) >= 90) }" || die "dropped, but $(column storage_percent)% from storage"
fi

expect 0 infer --batch-size 8 --limit-samples 16 --json infer.json
[ "$(column samples)" = "16 " ] || die "--limit-samples: $(column samples)"

# shellcheck disable=SC2086 # words without blanks
expect 0 "$IOBENCH" train --network tiny --size 32 --classes 3 --data set --batch-size 20 --lr 0.001 --checkpoint tiny
TINY="--network tiny --size 32 --classes 3 --data set --decode-threads 1 --compute-threads 1"
# shellcheck disable=SC2086 # words without blanks
expect 0 "$IOBENCH" infer $TINY --precision fp32,int8 --calibrate-images 20 --batch-size 8,16 \
    --json infer.json
[ "$(column precision)" = '"fp32" "fp32" "int8" "int8" ' ] || die "$(column precision)"
[ "$(column samples)" = "61 61 61 61 " ] || die "not every sample once: $(column samples)"
# The figures of a pass agree with each other; its pages are in tests/golden/pages.
cat >figures.py <<'END'
import json
d = json.load(open("infer.json"))
for r in d["batch_sizes"]:
    assert abs(r["samples_per_s"] * r["wall_s"] / r["samples"] - 1) < 1e-6, r
    assert r["wait_s"] + r["compute_s"] <= r["wall_s"] and r["labelled"] == r["samples"] == 61, r
    assert r["latency"]["batches"] == r["samples"] // r["batch_size"] and r["accuracy_reason"] == "", r
    assert r["latency"]["p50_ms"] <= r["latency"]["p99_ms"] <= r["latency"]["p99_9_ms"] <= r["latency"]["max_ms"], r
    assert r["record_bytes"] == d["batch_sizes"][0]["record_bytes"] > 61 * 2000, r
    assert 0 < r["int8_layers"] < r["weight_layers"] if r["precision"] == "int8" else r["int8_layers"] is None, r
assert d["calibrated"] == 20 and d["checkpoint"] == "tiny/last.checkpoint" and d["dataset"]["synthetic"], d
END
if command -v python3 >/dev/null; then
    # shellcheck disable=SC2086
    expect 0 "$IOBENCH" infer $TINY --checkpoint tiny --precision fp32,int8 --calibrate-images 20 --batch-size 8,16 --json infer.json
    python3 figures.py || die "figures disagree: $(cat infer.json)"
fi
# No channel count of LeNet is a multiple of 16: nothing runs in INT8.
expect 0 infer --precision fp32,int8 --calibrate-images 20 --batch-size 8 --limit-samples 16 --json infer.json
[ "$(column int8_layers)" = "null 0 " ] || die "int8_layers: $(column int8_layers)"
[ "$(column weight_layers)" = "null 4 " ] || die "weight_layers: $(column weight_layers)"
if built_with DNNL; then # refused before FP32 is measured
    # shellcheck disable=SC2086
    expect 1 env ONEDNN_MAX_CPU_ISA=AVX512_CORE "$IOBENCH" infer $TINY --precision fp32,bf16 --backend cpu
    says "bf16 needs a CPU with AVX512-BF16 or AMX, and this one has neither; use fp32"
    # shellcheck disable=SC2154 # expect sets it
    printf '%s\n' "$out" | grep -q "^fp32" && die "FP32 was measured first: $out"
fi
if built_with DNNL && grep -q avx512_bf16 /proc/cpuinfo; then
    # shellcheck disable=SC2086 # words without blanks
    expect 0 "$IOBENCH" infer $TINY --precision fp32,bf16 --batch-size 16 --backend cpu --json infer.json
    says "bf16 vs fp32, batches of 16"
    [ "$(column precision)" = '"fp32" "bf16" ' ] || die "$(column precision)"
fi
expect 1 infer --backend reference --precision fp16
says "computes in fp32 and int8"
expect 1 infer --checkpoint set
says "has no last.checkpoint, which 'iobench train --checkpoint"
expect 1 infer --checkpoint learnt --classes 4
says "3 classes"
echo "answered"
