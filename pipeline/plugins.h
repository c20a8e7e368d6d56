/* SPDX-License-Identifier: Apache-2.0
 * The members of the source family, for pipeline/registry.c alone. */
#ifndef IOBENCH_PIPELINE_PLUGINS_H
#define IOBENCH_PIPELINE_PLUGINS_H

#include "pipeline/origin.h"

extern const struct origin_ops origin_dataset;
extern const struct origin_ops origin_archive;
extern const struct origin_ops origin_idx;
extern const struct origin_ops origin_synthetic;

#endif
