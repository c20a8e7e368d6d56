/* SPDX-License-Identifier: Apache-2.0
 *
 * passes: turns blocks into steps. The forward pass visits the blocks in order, the backward pass
 * in reverse; each block has one function per pass.
 */
#ifndef IOBENCH_TRAINER_CUDA_PASSES_H
#define IOBENCH_TRAINER_CUDA_PASSES_H

#include "trainer/cuda/build.h"

void cuda_emit_forward(struct cuda_builder *builder);
/* Call after the forward pass of a program that trains. */
void cuda_emit_backward(struct cuda_builder *builder);

#endif
