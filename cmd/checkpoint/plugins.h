/* SPDX-License-Identifier: Apache-2.0
 * The writers. Only for cmd/checkpoint/registry.c. */
#ifndef IOBENCH_CMD_CHECKPOINT_PLUGINS_H
#define IOBENCH_CMD_CHECKPOINT_PLUGINS_H

#include "cmd/checkpoint/writer.h"

extern const struct writer_ops writer_uring;
extern const struct writer_ops writer_pwrite;

#endif
