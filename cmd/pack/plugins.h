/* SPDX-License-Identifier: Apache-2.0
 * The members of the source family, for cmd/pack/registry.c alone. */
#ifndef IOBENCH_CMD_PACK_PLUGINS_H
#define IOBENCH_CMD_PACK_PLUGINS_H

#include "cmd/pack/source.h"

extern const struct source_ops source_dataset;
extern const struct source_ops source_archive;
extern const struct source_ops source_mnist;
extern const struct source_ops source_synthetic;

#endif
