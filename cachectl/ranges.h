/* SPDX-License-Identifier: Apache-2.0
 * ranges: parts of files, such as those that a run reads. */
#ifndef IOBENCH_CACHECTL_RANGES_H
#define IOBENCH_CACHECTL_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct range {
    uint64_t offset, bytes;
};

/* File i has the parts list[first[i]] up to list[first[i + 1]]: whole pages up to its end, in
 * order, without overlap. */
struct ranges {
    const char **paths;
    size_t count; /* of files */
    size_t *first;
    struct range *list;
};

#endif
