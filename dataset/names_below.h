/* SPDX-License-Identifier: Apache-2.0
 *
 * names_below: hash the names below the root of a data set, to detect files added or removed, and
 * detect links that leave it.
 *
 * Skips hidden names, unfinished files and LMDB's lock file, which change without the data.
 */
#ifndef IOBENCH_DATASET_NAMES_BELOW_H
#define IOBENCH_DATASET_NAMES_BELOW_H

#include <stdbool.h>
#include <stdint.h>

struct names_below {
    uint64_t hash;
    bool leave; /* a link leaves the root, or may: the kernel cannot tell */
};

/* Zero if the root is a file. */
struct names_below names_below(const char *root);

/* Hash also sizes and times of the files, as catalog_identity() those of shards; of a file that the
 * root is its own. Asks for the status of each. Zero if there is no root. */
uint64_t names_below_identity(const char *root);

/* Return whether the walk above can reach this path, relative to the root: no "..", no empty part
 * and no skipped name. */
bool names_below_has(const char *below);

/* Return whether a relative path stays below its folder: no "." and no "..", no empty part. */
bool names_below_stays(const char *path);

/* Return the part of path below root: "" for the root itself, NULL if path is not below it. */
const char *names_below_path(const char *root, const char *path);

#endif
