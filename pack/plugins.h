/* SPDX-License-Identifier: Apache-2.0
 * The members of the source family, for pack/registry.c alone. */
#ifndef IOBENCH_PACK_PLUGINS_H
#define IOBENCH_PACK_PLUGINS_H

#include "pack/origin.h"

extern const struct origin_ops origin_dataset;
extern const struct origin_ops origin_archive;
extern const struct origin_ops origin_idx;
extern const struct origin_ops origin_synthetic;

#endif
