/* SPDX-License-Identifier: Apache-2.0
 * Members of the ranks family, for its registry only. */
#ifndef IOBENCH_RANKS_PLUGINS_H
#define IOBENCH_RANKS_PLUGINS_H

#include "ranks/ranks.h"

extern const struct ranks_ops ranks_mpi;
extern const struct ranks_ops ranks_none;

#endif
