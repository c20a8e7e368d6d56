/* SPDX-License-Identifier: Apache-2.0
 * The members of the shuffle family, for shuffle/registry.c alone. */
#ifndef IOBENCH_SHUFFLE_PLUGINS_H
#define IOBENCH_SHUFFLE_PLUGINS_H

#include "shuffle/plan.h"

extern const struct shuffle_ops shuffle_none;
extern const struct shuffle_ops shuffle_epoch;
extern const struct shuffle_ops shuffle_buffer;

#endif
