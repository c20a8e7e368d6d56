/* SPDX-License-Identifier: Apache-2.0
 *
 * observe: records the magnitudes of each node's output, for calibration.
 */
#ifndef IOBENCH_TRAINER_CUDA_OBSERVE_H
#define IOBENCH_TRAINER_CUDA_OBSERVE_H

#include "trainer/cuda/build.h"

/* Does nothing unless the config calibrates. */
int cuda_observe_open(struct cuda_model *model);
/* Observe the nodes that a block outputs, except the images: some of their channels are padding. */
void cuda_emit_observations(struct cuda_builder *builder, uint32_t block);
/* Copy everything observed to the config's calibration. Call with nothing in flight. */
int cuda_observe_fetch(const struct cuda_model *model);

#endif
