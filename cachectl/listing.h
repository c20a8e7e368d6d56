/* SPDX-License-Identifier: Apache-2.0
 * listing: the files below a path, following symbolic links. Any thread. */
#ifndef IOBENCH_CACHECTL_LISTING_H
#define IOBENCH_CACHECTL_LISTING_H

#include <stddef.h>

struct listing {
    char **paths;
    size_t count;
    size_t unread_count; /* unreadable folders, dangling links */
    char reason[256];    /* of the first such entry */
};

/* List the path itself if it is a file or block device, or every regular file below a folder.
 * Returns 0, or a negative errno with a reason. Clear in either case. */
int listing_make(struct listing *listing, const char *path);
void listing_clear(struct listing *listing);

#endif
