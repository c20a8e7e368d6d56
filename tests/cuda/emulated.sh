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
