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
    says "cuDNN engine" "two BNs, add, ReLU before, BN statistics" "ReLU, add, two BNs backward" \
        device_norm_backward_apply device_optimise
fi

expect 2 "$IOBENCH" plan nosuch
expect 2 "$IOBENCH" plan --gpu nosuch
says "unknown GPU 'nosuch'"
expect 2 "$IOBENCH" plan --backend reference --precision fp16
expect 2 "$IOBENCH" plan --backend reference --precision int8
says "--precision int8 requires --infer"
expect 2 "$IOBENCH" plan --tflops 3
expect 2 "$IOBENCH" plan --tflops 3 --bandwidth 5 --gpu h100
expect 1 "$IOBENCH" plan alexnet --size 8
