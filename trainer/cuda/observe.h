/* SPDX-License-Identifier: Apache-2.0
 *
 * observe: records the magnitudes of each node's output, for calibration.
 */
#ifndef IOBENCH_TRAINER_CUDA_OBSERVE_H
#define IOBENCH_TRAINER_CUDA_OBSERVE_H

#include "trainer/cuda/build.h"

/* Does nothing unless the config calibrates. Close it in either case. */
int cuda_observe_open(struct cuda_model *model);
void cuda_observe_close(struct cuda_model *model);
/* Make every node its own block, and observe each output. */
int cuda_observe_rewrite(const struct cuda_model *model, struct cuda_blocks *blocks);
void cuda_emit_observe(struct cuda_builder *builder, const struct cuda_block *own);
/* Copy everything observed to the config's calibration. Call with nothing in flight. */
int cuda_observe_fetch(const struct cuda_model *model);

#endif
