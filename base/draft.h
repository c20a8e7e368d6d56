/* SPDX-License-Identifier: Apache-2.0
 *
 * draft: a file that appears under its name only when it is complete.
 *
 * It is written beside its path as ".NAME.SUFFIX.partial". The suffix is random unless the caller
 * gives one, the file is new (nobody else's file or link is opened), and only a file that was made
 * here is ever renamed or removed. Two writers of one path never meet: the last one to commit wins.
 * Any thread, one at a time for each draft. 0 or a negative errno with a reason.
 */
#ifndef IOBENCH_BASE_DRAFT_H
#define IOBENCH_BASE_DRAFT_H

#include "base/folder.h"

#include <stdbool.h>

enum { FILE_DRAFT_SUFFIX_BYTES = 9 }; /* with its NUL */

struct file_draft_options {
    const char *suffix; /* letters and digits; NULL: random. A given one is locked by its writer */
    bool no_replace;    /* commit fails with -EEXIST when the path is taken */
};

struct file_draft {
    int fd;           /* -1: not open */
    char *path;       /* NULL: neither open nor to be committed */
    char *draft_path; /* where it is now */
    struct folder folder;
    struct stat made;
    bool no_replace;
};

/* options: NULL for the default. -EEXIST when the suffix was given and such a draft is there. */
int file_draft_open(struct file_draft *draft, const char *path,
                    const struct file_draft_options *options);
/* fsync, close, rename, fsync of the folder; on failure it is abandoned. */
int file_draft_commit(struct file_draft *draft);
/* Close and remove it; the reason stays. After a commit it does nothing. */
void file_draft_abandon(struct file_draft *draft);

/* Could the path be written? Better known before the work than after it. */
int file_draft_check(const char *path);

/* For what shall be seen while it is written: an empty file that took the place of what was there.
 * The descriptor or a negative errno. */
int file_draft_open_empty(const char *path);

/* Remove the draft of path with that suffix, if a process of this user left it when it was killed.
 * One that is being written stays, -EBUSY, and so does what is not this user's, -EPERM. */
int file_draft_remove_stale(const char *path, const char *suffix);

/* Where the draft of path with that suffix is. free() it; NULL with a reason. */
char *file_draft_path(const char *path, const char *suffix);
int file_draft_suffix(char suffix[FILE_DRAFT_SUFFIX_BYTES]); /* a random one */
bool file_is_draft_name(const char *name);                   /* ".NAME.SUFFIX.partial"? */

#endif
