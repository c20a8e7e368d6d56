#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The steps of a network: complete, with predicted times from the roofline model.
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || skip "python3 is not installed"

cat >check.py <<'END'
# check.py PLAN.json NETWORKS.json: checks for any backend.
import json, sys

plan, networks = (json.load(open(name)) for name in sys.argv[1:])
steps, phases = plan["steps"], plan["phases"]
network = next(row for row in networks["networks"] if row["name"] == plan["network"])
forward = network["forward_gflop"] * 1e9 * plan["batch_size"]
whole = network["training_gflop"] * 1e9 * plan["batch_size"] if plan["training"] else forward

def close(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))

assert close(phases["forward"]["flops"], forward), ("forward", phases["forward"], forward)
assert close(phases["batch"]["flops"], whole), ("batch", phases["batch"], whole)
assert ("backward" in phases) == ("update" in phases) == plan["training"]
for name in "steps", "read_bytes", "write_bytes", "flops":
    parts = sum(row[name] for phase, row in phases.items() if phase not in ("once", "batch"))
    assert close(parts, phases["batch"][name]), (name, parts)
assert len(steps) == sum(row["steps"] for phase, row in phases.items() if phase != "batch")
for step in steps:
    assert step["operation"] and step["engine"] and step["node"], step
    assert step["read_bytes"] > 0, step
    assert step["phase"] in ("loss", "forward") or step["write_bytes"] > 0, step
    if plan["peak_flops_per_s"]:
        moved = step["read_bytes"] + step["write_bytes"]
        least = max(step["flops"] / plan["peak_flops_per_s"], moved / plan["peak_bytes_per_s"])
        assert close(step["predicted_ns"], 1e9 * least), step
    else:
        assert step["predicted_ns"] is None, step
    timed = plan["measured_passes"] > 0 and step["phase"] != "once"
    assert (step["measured_ns"] is not None) == timed, step
    known = timed and step["predicted_ns"]
    assert not known if step["roof_share"] is None else close(
        step["roof_share"] * step["measured_ns"], step["predicted_ns"]), step
# Buckets hold all gradients, and leave after their last layer, behind what is left of the backward pass.
buckets = plan["buckets"]
assert bool(buckets) == plan["training"], buckets
assert not buckets or sum(row["bytes"] for row in buckets) == 4 * network["parameters"], buckets
assert all(a["sent_after"] < b["sent_after"] for a, b in zip(buckets, buckets[1:])), buckets
for row in buckets:
    left = [step for step in steps[row["sent_after"]:] if step["phase"] == "backward"]
    assert steps[row["sent_after"] - 1]["phase"] == "backward", row
    assert row["complete_with"] not in [step["node"] for step in left], row
    assert bool(left) == (row != buckets[-1]), row
    for figure in "predicted_ns", "measured_ns":
        times = [step[figure] for step in steps if step["phase"] == "backward"]
        assert (row["left_" + figure] is None) == (None in times), row
        assert None in times or close(row["left_" + figure], sum(step[figure] for step in left)), row
END

"$IOBENCH" list networks --json=networks.json || die "no list of networks"
check_backend() { # BACKEND
    backend=$1
    for network in lenet resnet110 googlenet; do
        for options in "" "--infer" "--tflops 2 --bandwidth 50" "--gpu a100"; do
            # shellcheck disable=SC2086 # words without blanks
            expect 0 "$IOBENCH" plan $network --backend "$backend" --batch-size 2 $options --json=plan.json
            python3 check.py plan.json networks.json || die "$backend, $network $options"
        done
    done
    expect 0 "$IOBENCH" plan lenet --backend "$backend" --batch-size 2 --infer --precision int8 --json=plan.json
    python3 check.py plan.json networks.json || die "$backend, int8"
    expect 0 "$IOBENCH" plan lenet --backend "$backend" --batch-size 2 --measure=2 --json=plan.json
    python3 check.py plan.json networks.json || die "$backend, measured"
    [ "$backend" != cpu ] || grep -q '"peak_source": "measured here' plan.json || die "no peaks measured"
    expect 0 "$IOBENCH" plan lenet --backend "$backend" --batch-size 2 --gpu h100
    says "lenet, $backend, fp32, training: batches of 2 images of 28 x 28" "NVIDIA H100 data sheet" \
        conv1 "softmax, cross-entropy" SGD workspace
}
check_backend reference
built_with DNNL && check_backend cpu

# For inference oneDNN fuses BN, ReLU and the sum of a residual block into convolutions.
if built_with DNNL; then
    expect 0 "$IOBENCH" plan resnet50 --backend cpu --batch-size 1 --size 64 --infer
    says "batch norm, relu" "batch norm, add, relu" "fold batch norm"
fi

# In BF16 tensors take half of the bytes, gradients of weights do not, and are computed where the update reads them, but for
# padded ones and, with AMX, those of the classifier. CPUs without it are refused, no others.
cat >halves.py <<'END'
import collections, json
bytes = {}
for name in "fp32", "bf16":
    plan = json.load(open(name + ".json"))
    assert plan["precision"] == name, plan["precision"]
    for step in plan["steps"]:
        key = name, step["phase"], step["operation"]
        bytes.setdefault(key, collections.Counter()).update(read=step["read_bytes"], write=step["write_bytes"])
def share(phase, operation, way):
    return bytes["bf16", phase, operation][way] / bytes["fp32", phase, operation][way]
for phase, operation, way in (("forward", "convolution", "write"), ("forward", "add", "write"),
                              ("backward", "data gradient", "write"), ("backward", "data gradient", "read"),
                              ("backward", "gradient sum, relu backward", "read"),
                              ("backward", "weight gradient", "read")):
    assert share(phase, operation, way) == 0.5, (phase, operation, way, share(phase, operation, way))
assert share("backward", "weight gradient", "write") == 1
steps = plan["steps"]
moved = [step["node"] for step, after in zip(steps, steps[1:]) if step["operation"] == "weight gradient" and
         after["operation"] == "reorder" and after["node"] == step["node"] and after["read_bytes"] == after["write_bytes"]]
assert len(moved) <= 2, moved
END
if built_with DNNL; then
    expect 1 env ONEDNN_MAX_CPU_ISA=AVX512_CORE "$IOBENCH" plan lenet --backend cpu --precision bf16
    says "bf16 needs a CPU with AVX512-BF16 or AMX"
    expect 2 "$IOBENCH" plan lenet --backend cpu --precision fp16
    says "fp32, bf16"
    if grep -q avx512_bf16 /proc/cpuinfo; then
        for precision in fp32 bf16; do
            expect 0 "$IOBENCH" plan resnet110 --backend cpu --batch-size 2 --precision $precision \
                --json=$precision.json
            python3 check.py $precision.json networks.json || die "$precision"
        done
        python3 halves.py || die "bytes in BF16"
        expect 0 "$IOBENCH" plan lenet --backend cpu --batch-size 2 --precision bf16 --measure=1
        says "lenet, cpu, bf16, training" "BF16 matrix product"
    fi
fi

# No GPU is needed. The leak sanitizer reads its suppressions at exit, which the sandbox denies.
if built_with CUDA; then
    sandbox=auto
    grep -q "fsanitize=address" "$(dirname "$CONFIG")/Makefile" && sandbox=no
    for options in "--gpu a100" "--gpu h100 --precision bf16" "--gpu h100 --infer" \
        "--gpu a100 --infer --precision int8"; do
        # shellcheck disable=SC2086 # words without blanks
        expect 0 "$IOBENCH" plan resnet50 --backend cuda --batch-size 4 $options --sandbox $sandbox \
            --json=plan.json
        python3 check.py plan.json networks.json || die "cuda, $options"
    done
    expect 0 "$IOBENCH" plan resnet50 --backend cuda --batch-size 4 --gpu h100 --sandbox $sandbox
    says "Engines of cuDNN 9." "cuDNN engine" "two BNs, add, ReLU before, BN statistics" "ReLU, add, two BNs backward" \
        device_norm_backward_apply device_optimise

    # All of the schedule that bench/device.sh runs: a change of a kernel, engine, fusion, byte or bucket shows here. The
    # engines are those of one version of cuDNN. To renew it, review what differs:
    #   COLUMNS=80 ./iobench plan resnet50 --backend cuda --gpu h100 --batch-size 256 >../tests/golden/plan-h100.txt
    golden=$SRCDIR/tests/golden/plan-h100.txt
    expect 0 env COLUMNS=80 "$IOBENCH" plan resnet50 --backend cuda --gpu h100 --batch-size 256 --sandbox $sandbox
    # shellcheck disable=SC2154 # expect sets it
    printf '%s\n' "$out" >plan.txt
    if grep -qxF "$(sed -n 2p "$golden")" plan.txt; then
        diff "$golden" plan.txt >differs || die "the schedule differs from $golden: $(head -40 differs)"
    else
        echo "the golden schedule is of another library: $(sed -n 2p "$golden"), here $(sed -n 2p plan.txt)"
    fi
fi

