/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse: which convolutions compute what surrounds them.
 *
 * Between two convolutions are BN and ReLU, perhaps also a sum. As separate steps they read and
 * write whole tensors, which is most of what a step waits for. A convolution can
 * - compute the sums that the BN after it needs (statistics),
 * - apply BN and ReLU to its input while reading it, in both passes, so that the tensor between is
 *   never stored (prologue); or a sum of one or two BNs and ReLU, which it stores for later users:
 *   the other side of the next block, and the backward pass,
 * - in the backward pass go through the ReLU before it, and compute the gradient sums of the BN
 *   before that (norm), or of the two BNs of a sum, with a second gradient added.
 *
 * In inference, where BN is a scale and a bias per channel, a convolution can apply the BN after
 * it, and a sum and ReLU after that; a convolution with a bias can add it and apply ReLU, in
 * training too.
 *
 * On a device the fastest is chosen: an engine that fuses, by the time it took when it was chosen,
 * or one that does not and the steps of our own around it, by the bytes they move. Where engines
 * were not timed, the choice is a rule: fuse as much as cuDNN has engines for, unless the engine's
 * workspace undoes what the fusion saves.
 */
#ifndef IOBENCH_TRAINER_CUDA_FUSE_H
#define IOBENCH_TRAINER_CUDA_FUSE_H

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/model.h"

/* Set fusion and output of the blocks, which are linked. */
int cuda_fuse(struct cuda_blocks *blocks, struct cuda_model *model, uint32_t images, bool training);

/* Return the BN after a convolution, in the sum or stem that reads its output; or CUDA_NONE. */
uint32_t cuda_norm_after(const struct cuda_blocks *blocks, const struct cuda_block *convolution);
/* Point the tensors that a fused convolution needs besides input, weights and output to the rows of
 * its BNs: `before` and `beside` it, and `after` it. */
void cuda_fused_rows(const struct cuda_model *model, uint32_t fusion, const uint32_t before[2],
                     uint32_t after, struct dnn_tensors *tensors);

#endif
