/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_model: the parameters of INT8 inference, and which nodes one INT8 convolution computes.
 */
#ifndef IOBENCH_TRAINER_CUDA_INT8_MODEL_H
#define IOBENCH_TRAINER_CUDA_INT8_MODEL_H

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/model.h"

/* The nodes that one INT8 convolution computes. */
struct cuda_chain cuda_chain_of(const struct cuda_model *model, uint32_t convolution);

/* Does nothing unless the config has ranges. Close it in either case. */
int cuda_int8_open(struct cuda_model *model);
void cuda_int8_close(struct cuda_model *model);
/* Call after the parameters changed. */
int cuda_int8_load(struct cuda_model *model);

#endif
