#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The compiled kernels read their tensors, and what they need of each channel, 16 bytes at once.
set -u
command -v python3 >/dev/null || exit 77
exec python3 "${srcdir:-.}/tests/cuda/loads.py" kernels/device.nvcc.o kernels/device_resize.nvcc.o \
    --check "${srcdir:-.}/tests/cuda/loads.list"
