/* SPDX-License-Identifier: Apache-2.0
 * All kernels of a training in one unit: CUDA's own headers take nvcc three to four seconds per
 * unit, the kernels of a file below one. */
#include "kernels/device_convolution.cu"
#include "kernels/device_ends.cu"
#include "kernels/device_magnitudes.cu"
#include "kernels/device_norm.cu"
#include "kernels/device_optimise.cu"
#include "kernels/device_pointwise.cu"
#include "kernels/device_pool.cu"
