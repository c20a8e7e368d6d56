/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerators: how many GPUs a rate of samples keeps busy with ResNet-50, in one place so that all
 * reports agree. Pure; any thread.
 */
#ifndef IOBENCH_PIPELINE_RESULT_ACCELERATORS_H
#define IOBENCH_PIPELINE_RESULT_ACCELERATORS_H

#include "trainer/accelerator.h"

static inline double accelerators_count(const struct accelerator *gpu, double samples_per_s)
{
    return samples_per_s / gpu->mixed_samples_per_s;
}

#endif
