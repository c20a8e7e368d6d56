/* SPDX-License-Identifier: Apache-2.0
 * nearest: finds the name that a mistyped one was meant to be. */
#ifndef IOBENCH_CMD_NEAREST_H
#define IOBENCH_CMD_NEAREST_H

#include "base/option.h"

struct nearest {
    const char *wanted;
    const char *best; /* NULL if none is near */
    unsigned distance;
};

struct nearest nearest_start(const char *wanted);
void nearest_offer(struct nearest *nearest, const char *name);
void nearest_offer_table(struct nearest *nearest, const struct option_spec *table);

#endif
