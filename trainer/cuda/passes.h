/* SPDX-License-Identifier: Apache-2.0
 *
 * passes: from blocks to steps. The forward pass goes through the blocks in order, the backward
 * pass in reverse; each block has one function for each pass.
 */
#ifndef IOBENCH_TRAINER_CUDA_PASSES_H
#define IOBENCH_TRAINER_CUDA_PASSES_H

#include "trainer/cuda/build.h"

void cuda_emit_forward(struct cuda_builder *builder);
/* After the forward pass of a program that trains. */
void cuda_emit_backward(struct cuda_builder *builder);

#endif
