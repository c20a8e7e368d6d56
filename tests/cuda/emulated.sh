#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of every backend, those of the cpu backend and those of batch uploads, on the cuda backend
# with the host in place of a device.
set -eu
IOBENCH_CUDA_MODULE=$PWD/tests/cuda/emulated.so
export IOBENCH_CUDA_MODULE
for test in tests/cuda/test_cuda tests/cuda/test_input tests/unit/test_backend tests/unit/test_quantise; do
    echo "== $test"
    "$test"
done
# Everything fused, and nothing; above a mixture.
for fusion in all no; do
    echo "== fusion=$fusion"
    IOBENCH_TEST_BACKEND=cuda:fp32,plans=none,fusion=$fusion tests/cuda/test_cuda
done
# Fused where the engine that fuses is faster than one that does not and the steps around it: 0.1 us more, as
# little as a pass over the least tensor takes at the 1 GB/s of this memory, pays; a thousand times as long does not.
fused() { # how many engines fuse more than a bias
    IOBENCH_EMULATED_MS=$1 ./iobench plan tiny --backend cuda:fp16,plans=none --batch-size 2 --measure=1 |
        tr -s '\n ' ' ' | grep -o 'engine [0-9]*; fused: [^0-9]*' | grep -vc 'fused: bias' || :
}
[ "$(fused '9 0.001')" = 0 ] || { echo "fused although slower" && exit 1; }
[ "$(fused '1 0.9999')" -gt 30 ] || { echo "not fused although a pass is saved" && exit 1; }
