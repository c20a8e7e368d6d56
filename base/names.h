/* SPDX-License-Identifier: Apache-2.0
 *
 * names: a set of strings, numbered from 0 in insertion order, with constant-time lookup. One
 * thread.
 */
#ifndef IOBENCH_BASE_NAMES_H
#define IOBENCH_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names {
    char **texts; /* by number */
    uint32_t count;
    /* private */
    uint32_t *table; /* number + 1, 0 if free; open addressing */
    uint32_t slots;  /* a power of two, at least twice count */
    uint64_t probes; /* slots probed so far, for tests */
};

/* Return the number of a string of `length` bytes, inserting it if new, or -ENOMEM with a
 * reason. */
int64_t names_number(struct names *names, const char *text, size_t length);
bool names_has(struct names *names, const char *text);
void names_release(struct names *names);

#endif
