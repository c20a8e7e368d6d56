/* SPDX-License-Identifier: Apache-2.0
 *
 * observe: the magnitudes of what each node computes, for calibration.
 */
#ifndef IOBENCH_TRAINER_CUDA_OBSERVE_H
#define IOBENCH_TRAINER_CUDA_OBSERVE_H

#include "trainer/cuda/build.h"

/* Does nothing unless the config calibrates. Close it in either case. */
int cuda_observe_open(struct cuda_model *model);
void cuda_observe_close(struct cuda_model *model);
/* Every node is a block of its own; each output is observed. */
int cuda_observe_rewrite(const struct cuda_model *model, struct cuda_blocks *blocks);
void cuda_emit_observe(struct cuda_builder *builder, const struct cuda_block *own);
/* Copies everything observed to the config's calibration; nothing is in flight. */
int cuda_observe_fetch(const struct cuda_model *model);

#endif
