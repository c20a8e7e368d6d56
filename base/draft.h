/* SPDX-License-Identifier: Apache-2.0
 *
 * draft: a file that appears under its name only when it is complete; locks; what an output
 * replaces.
 *
 * The draft is ".NAME.SUFFIX.partial" beside its path. The suffix is random unless given, the file
 * is always new (no existing file or link is opened), and only a file made here is renamed or
 * removed. Writers of one path never collide: the last commit wins. Any thread, one at a time per
 * draft. Returns 0 or a negative errno with a reason.
 */
#ifndef IOBENCH_BASE_DRAFT_H
#define IOBENCH_BASE_DRAFT_H

#include "base/folder.h"

#include <stdbool.h>
#include <stddef.h>

enum { FILE_DRAFT_SUFFIX_BYTES = 9 }; /* including NUL */

struct file_draft_options {
    const char *suffix; /* letters and digits; NULL: random */
    bool no_replace;    /* commit fails with -EEXIST if the path exists */
};

struct file_draft {
    int fd;           /* -1: not open */
    char *path;       /* NULL: not open, nothing to commit */
    char *draft_path; /* its current path */
    struct folder folder;
    struct stat made;
    bool no_replace;
};

/* options: NULL for defaults. -EEXIST if a draft with the given suffix exists. */
int file_draft_open(struct file_draft *draft, const char *path,
                    const struct file_draft_options *options);
/* fsync, close, rename, fsync the folder; abandon on failure. */
int file_draft_commit(struct file_draft *draft);
/* Close and remove; keeps the reason. No-op after a commit. */
void file_draft_abandon(struct file_draft *draft);

/* Check before the work, rather than after it, that the path is writable. */
int file_draft_check(const char *path);

/* For output that is read while being written: replace the path by an empty file. Returns a
 * descriptor or a negative errno. */
int file_draft_open_empty(const char *path);

/* Remove the draft with that suffix if a killed process of this user left it: its writer locks it.
 * Returns -EBUSY if it is being written, -EPERM if it is not this user's. suffix NULL: remove all
 * drafts with a random suffix but those two kinds; lists the folder. */
int file_draft_remove_stale(const char *path, const char *suffix);

/* Return the malloc()ed path of the draft with that suffix, or NULL with a reason. */
char *file_draft_path(const char *path, const char *suffix);
int file_draft_suffix(char suffix[FILE_DRAFT_SUFFIX_BYTES]); /* a random one */
bool file_is_draft_name(const char *name);                   /* ".NAME.SUFFIX.partial"? */

/* ---- lock ----
 *
 * Mutual exclusion of processes that name the same file, on this machine and, where the file
 * system supports it, on others.
 *
 * The lock is flock(2) on a file of its own, so it ends with its holder however that ends. The
 * file names the holder. On file systems without flock, the file's existence is the lock. */

struct file_lock {
    int fd; /* -1: not held */
    char *name;
    struct folder folder;
    struct stat made;
};

/* Never blocks. -EBUSY if held: the reason names its process and host. Anything that is not a lock
 * (a link, a FIFO, other contents) is refused and not touched. */
int file_lock_acquire(struct file_lock *lock, const char *path);
void file_lock_release(struct file_lock *lock); /* also removes the file; no-op if not held */

/* ---- what may be replaced ----
 *
 * Which files an output may replace: an empty one, or an older output of its kind, so that a
 * mistyped path destroys nothing. A kind is known by how a file begins; pictures carry a mark at
 * their end, since other programs make them, too. Any thread. */

/* Check that an output that begins with `text` may replace the file at path. Alike are JSON of
 * schemas of this program or with the same two first keys; PNG, PDF and SVG with a mark; other
 * files with the same first line, up to its second comma. Returns 0, also if there is no file,
 * -EEXIST with a reason, or another negative errno. */
int replaced_check(const char *path, const char *text, size_t bytes);

struct picture_mark {
    const char *bytes;
    size_t length;
    size_t tail; /* bytes of the picture that follow the mark */
};

/* Return the mark that a picture needs; that of other texts is empty. */
struct picture_mark replaced_mark(const char *picture, size_t bytes);

#endif
