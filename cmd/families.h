/* SPDX-License-Identifier: Apache-2.0
 * families: every plug-in family, for list, help, the manual page and completion. */
#ifndef IOBENCH_CMD_FAMILIES_H
#define IOBENCH_CMD_FAMILIES_H

#include "base/plugin.h"

struct family {
    const char *name;   /* "reader" */
    const char *option; /* option of `iobench run` that selects a member */
    const char *summary;
    const struct plugin *const *registry;
};

extern const struct family family_table[]; /* ends with a NULL name */

#endif
