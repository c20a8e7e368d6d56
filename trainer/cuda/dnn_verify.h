/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn_verify: compares what an engine computed for a shape with the reference kernels: elements of
 * the results one by one, all numbers per channel, and that every element was written.
 *
 * Tolerance. u is the unit round-off of the type in which numbers are multiplied (FP32 2^-24, TF32
 * and FP16 2^-11, BF16 2^-8), n the number of terms of an element, R the root of the sum of their
 * squares: the noise has random signs, so R is about the size of the sum. An element may be off by
 * 8 u (|element| + R) + 2^-20 sqrt(n) R: roundings of inputs, between fused operations, and of the
 * result; and the random roundings of a sum in FP32, expected within 2^-24 sqrt(n) R, 16 times over
 * for tensor cores, which truncate. Leaving out one of m equal parts of a sum changes it by
 * about R / sqrt(m), in FP16 more than that for parts up to some thousand.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_VERIFY_H
#define IOBENCH_TRAINER_CUDA_DNN_VERIFY_H

#include "trainer/cuda/dnn_trial.h"

/* The kind and size of the noise that a tensor gets; results are poisoned. */
struct device_noise dnn_noise(const struct dnn_shape *shape, enum dnn_tensor which);
uint64_t dnn_count(const struct dnn_shape *shape, enum dnn_tensor which);

/* Compare the results in the trial's tensors. Returns 0, also if they are wrong: then `wrong` says
 * what is. */
int dnn_verify(const struct dnn_trial *trial, char wrong[DNN_WRONG_BYTES]);

#endif
