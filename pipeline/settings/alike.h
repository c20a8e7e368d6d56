/* SPDX-License-Identifier: Apache-2.0
 * alike: the ranks of a job are started with the same options. */
#ifndef IOBENCH_PIPELINE_SETTINGS_ALIKE_H
#define IOBENCH_PIPELINE_SETTINGS_ALIKE_H

#include "base/option.h"
#include "ranks/ranks.h"

/* Collective: compare the values of all options of a table, but paths and resources, which may
 * differ. With another seed one rank would repeat some samples and omit others; with another batch
 * size it would wait for steps that nobody takes. All fail alike, naming the option. */
int options_check_alike(const struct option_spec *table, const void *settings, struct ranks *ranks);

#endif
