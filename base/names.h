/* SPDX-License-Identifier: Apache-2.0
 *
 * names: a set of texts, numbered from 0 in the order in which they were added. Finding one takes
 * the same time however many there are. One thread.
 */
#ifndef IOBENCH_BASE_NAMES_H
#define IOBENCH_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct names {
    char **texts; /* by number */
    uint32_t count;
    /* private */
    uint32_t *table; /* number + 1, 0 where nothing is; open addressing */
    uint32_t slots;  /* a power of two, at least twice count */
    uint64_t probes; /* slots looked at so far, for tests */
};

/* The number of a text of length bytes, added when it is new. -ENOMEM with a reason. */
int64_t names_number(struct names *names, const char *text, size_t length);
void names_release(struct names *names);

#endif
