/* SPDX-License-Identifier: Apache-2.0
 *
 * feeds: how many GPUs a rate of samples keeps busy with ResNet-50, in one place so that every
 * report agrees. Pure; any thread.
 */
#ifndef IOBENCH_PIPELINE_FEEDS_H
#define IOBENCH_PIPELINE_FEEDS_H

#include "trainer/accelerator.h"

static inline double feeds_count(const struct accelerator *gpu, double samples_per_s)
{
    return samples_per_s / gpu->mixed_samples_per_s;
}

#endif
