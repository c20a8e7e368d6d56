/* SPDX-License-Identifier: Apache-2.0
 *
 * names_below: the names below the root of a data set, as one number that changes when a file comes
 * or goes, and whether one of them leads out of it.
 *
 * Hidden names, unfinished files and LMDB's lock file come and go without the data changing: they
 * are passed over.
 */
#ifndef IOBENCH_DATASET_NAMES_BELOW_H
#define IOBENCH_DATASET_NAMES_BELOW_H

#include <stdbool.h>
#include <stdint.h>

struct names_below {
    uint64_t hash;
    bool leave; /* a link leads out of the root, or may: the kernel cannot tell */
};

/* Empty when the root is a file. */
struct names_below names_below(const char *root);

/* Could the walk above meet this path, given relative to the root? Then it has no "..", no empty
 * part and nothing that the walk passes over. */
bool names_below_has(const char *below);

#endif
