/* SPDX-License-Identifier: Apache-2.0
 *
 * int8: blocks of INT8 inference, which replace others in a program.
 */
#ifndef IOBENCH_TRAINER_CUDA_INT8_H
#define IOBENCH_TRAINER_CUDA_INT8_H

#include "trainer/cuda/build.h"

/* Set kept[node] for nodes that INT8 convolutions compute. */
void cuda_int8_mark(const struct cuda_model *model, bool *kept);
/* Replace those nodes' blocks by INT8 convolutions, with conversions where needed. */
int cuda_int8_rewrite(const struct cuda_model *model, struct cuda_blocks *blocks);

void cuda_emit_convolution_int8(struct cuda_builder *builder, const struct cuda_block *own);
void cuda_emit_quantise(struct cuda_builder *builder, const struct cuda_block *own);
void cuda_emit_dequantise(struct cuda_builder *builder, const struct cuda_block *own);

#endif
