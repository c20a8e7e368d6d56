/* SPDX-License-Identifier: Apache-2.0
 * listing: the files below a path, symbolic links followed. Any thread. */
#ifndef IOBENCH_CACHECTL_LISTING_H
#define IOBENCH_CACHECTL_LISTING_H

#include <stddef.h>

struct listing {
    char **paths;
    size_t count;
    size_t unread_count; /* folders that could not be read, links that lead nowhere */
    char reason[256];    /* of the first of them */
};

/* The path itself when it is a file or a block device; of a folder every regular file below it.
 * 0, or a negative errno with a reason. Clear it in either case. */
int listing_make(struct listing *listing, const char *path);
void listing_clear(struct listing *listing);

#endif
