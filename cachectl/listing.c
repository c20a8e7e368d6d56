/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/listing.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int append(struct listing *listing, const char *path)
{
    if (memory_room(&listing->paths, listing->count, sizeof *listing->paths, "files"))
        return -ENOMEM;
    listing->paths[listing->count] = strdup(path);
    if (!listing->paths[listing->count])
        return fail(ENOMEM, "%s: out of memory for its name", path);
    listing->count++;
    return 0;
}

static void note_unread(struct listing *listing, const char *path, int code)
{
    if (listing->unread_count++ == 0)
        snprintf(listing->reason, sizeof listing->reason, "%.180s: %s", path,
                 fail_errno_text(code));
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int visit(struct listing *listing, const FTSENT *entry)
{
    switch (entry->fts_info) {
    case FTS_F:
        return append(listing, entry->fts_path);
    case FTS_DEFAULT: /* FIFOs etc. hold no data; a block device counts only if named */
        if (entry->fts_level == FTS_ROOTLEVEL)
            return append(listing, entry->fts_path);
        return 0;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        if (entry->fts_level == FTS_ROOTLEVEL)
            return fail(entry->fts_errno, "%s: %s", entry->fts_path,
                        fail_errno_text(entry->fts_errno));
        note_unread(listing, entry->fts_path, entry->fts_errno);
        return 0;
    case FTS_SLNONE:
        note_unread(listing, entry->fts_path, ENOENT);
        return 0;
    default: /* folders; a link to an ancestor is not followed */
        return 0;
    }
}

int listing_make(struct listing *listing, const char *path)
{
    char *const roots[] = {(char *)(uintptr_t)path, NULL};
    int code = 0;

    *listing = (struct listing){0};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    if (!walk)
        return fail(errno, "%s: %s", path, fail_errno_text(errno));
    errno = 0;
    for (FTSENT *entry; code == 0 && (entry = fts_read(walk)); errno = 0)
        code = visit(listing, entry);
    if (code == 0 && errno)
        code = fail(errno, "%s: cannot list: %s", path, fail_errno_text(errno));
    fts_close(walk);
    return code;
}

void listing_clear(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->paths[i]);
    free(listing->paths);
    *listing = (struct listing){0};
}
