#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A data set uploaded to an emulated device by the whole program, with late uploads: a batch's memory is
# not decoded into before it was copied, and the network learns the same however far ahead batches are
# uploaded. Both jobs run concurrently and share the file of plans.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

IOBENCH_CUDA_MODULE=$(dirname "$IOBENCH")/tests/cuda/emulated.so
IOBENCH_EMULATED_LATE_US=5000
export IOBENCH_CUDA_MODULE IOBENCH_EMULATED_LATE_US

expect 0 "$IOBENCH" pack synthetic:count=48,classes=3,mean=6k,seed=5 set
train() { # NAME BACKEND
    "$IOBENCH" train --network lenet --size 16 --classes 3 --data set --eval-data set \
        --batch-size 4 -t 2 --lr 0.001 --memory 16m --epochs 2 --prefetch 1 --checkpoint "$1" \
        --backend "cuda:fp32,$2" --json "$1.json" >"$1.out" 2>&1 || return
    grep -E '"(evaluation_)?loss":' "$1.json" >"$1.losses"
}
train apart ahead=0,graph=no &
train ahead ahead=2 || die "$(cat ahead.out)"
wait $! || die "$(cat apart.out)"
[ "$(wc -l <apart.losses)" -ge 4 ] || die "no losses in apart.json"
cmp apart.losses ahead.losses || die "uploads ahead change what is learnt: $(cat ./*.losses)"
out=$(tr -s ' \n' ' ' <ahead.out)
says " Limit " "of the GPU, of which" "pinned"
infer() { # BACKEND
    expect 0 "$IOBENCH" infer --network lenet --size 16 --classes 3 --data set --checkpoint ahead \
        --batch-size 5 -t 2 --memory 16m --prefetch 1 --backend "cuda:fp32,$1" --json -
    printf '%s\n' "$out" | grep -E '"(loss|top1|labelled|batches)":'
}
infer ahead=0,graph=no >apart.answers
infer ahead=2 >ahead.answers
[ "$(wc -l <apart.answers)" -eq 4 ] || die "no answers: $out"
cmp apart.answers ahead.answers || die "uploads ahead change the answers: $(cat ./*.answers)"
# INT8's ranges are found on the device.
expect 0 "$IOBENCH" infer --network tiny --size 32 --classes 3 --data set --precision int8 --calibrate-images 6 \
    --batch-size 4 --limit-samples 4 --warmup 0 -t 2 --memory 16m --backend cuda:fp32,plans=none
says "tiny on cuda" "INT8 calibrated by kl on 6 images" "cuDNN has no engine for the INT8 convolution of"
# A file of plans that cannot be written does not end a job, also when the last, smaller batch adds to it.
expect 0 "$IOBENCH" infer --network lenet --size 16 --classes 3 --data set --checkpoint ahead --batch-size 5 \
    --limit-samples 8 -t 2 --memory 16m --backend cuda:fp32,plans=nowhere/plans.json
says "chosen engines are not kept, and will be timed again: nowhere/plans.json"
# An empty name is no file, as "none" is.
expect 0 "$IOBENCH" infer --network lenet --size 16 --classes 3 --data set --checkpoint ahead --batch-size 5 \
    --limit-samples 8 -t 2 --memory 16m --backend cuda:fp32,plans=
case $out in *"are not kept"*) die "kept in a file without a name: $out" ;; esac
# One seed, the same losses on each backend; and a benchmark of what runs without an engine is none.
steps=$(dirname "$IOBENCH")/bench/device_steps
expect 0 "$steps" --side 16 --loss 3 lenet 2 reference cuda:fp16,plans=none cuda:fp32,plans=none,fusion=no
says "reference: 0.000% from reference" "fusion=no: 0.0"
# A scaled loss changes nothing but what vanishes, or overflows.
expect 0 "$steps" --side 16 --loss 3 lenet 2 cuda:fp16,plans=none cuda:fp16,plans=none,loss-scale=1024
says "loss-scale=1024: 0.0"
expect 1 "$steps" --side 16 --loss 3 lenet 2 cuda:fp16,plans=none cuda:fp16,plans=none,loss-scale=32768
says "loss-scale=32768: " ": FAILED"
# Gradients may overflow where the loss does not: no checkpoint is left of such weights.
expect 1 "$IOBENCH" train --network lenet --size 28 --classes 3 --data set --batch-size 8 --limit-samples 8 -t 2 \
    --memory 16m --checkpoint never --backend cuda:fp16,plans=none,loss-scale=32768
says "never/last.checkpoint: not written: weights are NaN or infinite after step 1"
[ ! -e never/last.checkpoint ] || die "a checkpoint of no use was written"
expect 0 "$steps" --side 8 --loss 2 tiny 8 reference cuda:fp16,plans=none,fusion=all # gradients of fused BN
says "fusion=all: 0.0"
expect 1 env IOBENCH_EMULATED_REFUSED=50 "$steps" --side 16 cuda:fp16,plans=none lenet 2 0
says "FAILED: cuDNN has no engine for the convolution of conv2 (batch 2, 20 x 6 x 6 by 5 x 5 / 1 in 1 to 50)"
# So is one whose engine computes something else: the plain kernel takes its place.
expect 1 env IOBENCH_EMULATED_WRONG=50 "$steps" --side 16 cuda:fp16,plans=none lenet 2 0
says "FAILED: an engine of cuDNN is not used for the forward pass of conv2 (batch 2, 20 x 6 x 6 by 5 x 5 / 1 in 1 to 50): it computes " " instead of "
# Two images at this rate diverge, and BF16 elsewhere.
expect 1 "$steps" --side 8 --loss 20 tiny 2 cuda:fp32,plans=none cuda:bf16,plans=none
says "bf16,plans=none: " ": FAILED"
# A device that is not here is planned for.
expect 0 "$IOBENCH" plan lenet --backend cuda:fp32,plans=none --gpu h100
says "lenet, cuda, fp32, training" "NVIDIA H100 data sheet" device_optimise
# Each step is timed on the device, in a CUDA graph and without: those that take long are found.
for graph in yes no; do
    expect 0 env IOBENCH_EMULATED_SLOW=50 "$IOBENCH" plan lenet --backend "cuda:fp32,plans=none,graph=$graph" --gpu h100 \
        --batch-size 2 --measure=2 --json=plan.json
    command -v python3 >/dev/null || continue
    python3 - <<'END' || die "graph=$graph: steps are not timed"
import json
steps = json.load(open("plan.json"))["steps"]
assert all(step["measured_ns"] and step["roof_share"] for step in steps), steps
slow = [step for step in steps if step["operation"] == "weight gradient" and step["node"] == "conv2"]
assert len(slow) == 1 and slow[0]["measured_ns"] >= 20e6, slow
assert steps[-1]["phase"] == "update" and steps[-1]["measured_ns"] > 1000, steps[-1]
END
done
# Engines timed for it are kept, also from inside the sandbox.
expect 0 env XDG_CACHE_HOME="$PWD/new" "$IOBENCH" plan lenet --backend cuda:fp32 --batch-size 2 --measure=1
[ -e new/iobench/cudnn-plans.json ] || die "chosen engines are not kept"
expect 1 "$IOBENCH" plan lenet --backend cuda:fp32,plans=none --gpu a100 --measure
says "--measure runs on this machine's GPU, emulated of compute capability 9.0"
# By the device's clock: uploads took at least what they were late, and none was waited for twice.
value() { sed -n "s/.*\"$1\": \\([0-9.e-]*\\).*/\\1/p" apart.json | head -n 1; }
awk -v copy="$(value upload_copy_s)" -v upload="$(value upload_s)" \
    'BEGIN { exit !(copy >= 12 * 2 * 0.005 && upload > 0) }' ||
    die "uploads of $(value upload_copy_s) s, $(value upload_s) s of them waited for"
