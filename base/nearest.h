/* SPDX-License-Identifier: Apache-2.0
 *
 * nearest: what a mistyped name was meant to be. Offer every known name, then fail or hint.
 * Names are borrowed; one thread per struct. Also sets of names. */
#ifndef IOBENCH_BASE_NEAREST_H
#define IOBENCH_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ---- names ----
 *
 * A set of strings, numbered from 0 in insertion order, with constant-time lookup. One thread. */

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
