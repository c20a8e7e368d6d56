/* SPDX-License-Identifier: Apache-2.0
 *
 * nearest: what a mistyped name was meant to be. Offer every known name, then fail or hint.
 * Names are borrowed; one thread per struct. */
#ifndef IOBENCH_BASE_NEAREST_H
#define IOBENCH_BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *wanted;
    const char *dashes; /* printed before the name in a hint: "--", default "" */
    const char *best;   /* NULL if none is near */
    unsigned distance;
    size_t known_bytes;
    char known[384]; /* the names offered: "a, b, c" */
    char hint[96];
};

struct nearest nearest_start(const char *wanted);
void nearest_offer(struct nearest *nearest, const char *name);

/* Return "; did you mean 'NAME'?", or "" if no name is near. Valid as long as nearest. */
const char *nearest_hint(struct nearest *nearest);

/* fail(code): "WHAT 'WANTED' (known: a, b, c); did you mean 'NAME'?" Returns -code. */
int nearest_fail(struct nearest *nearest, int code, const char *what);

#endif
