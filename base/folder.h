/* SPDX-License-Identifier: Apache-2.0
 *
 * folder: a directory handle and operations on the names in it.
 *
 * Only folder_open() follows links, since its path is the user's own. A name is one component,
 * never "", ".", ".." or with a slash, and is never followed if it is a link. So nobody with write
 * access to the folder can redirect a call to another file. Any thread. Returns 0, a descriptor, or
 * a negative errno with a reason that contains the path.
 */
#ifndef IOBENCH_BASE_FOLDER_H
#define IOBENCH_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct folder {
    int fd;
    char *path; /* for messages and path-only calls */
};

int folder_open(struct folder *folder, const char *path);
/* Open the folder that contains path. *name: the last component, within path; NULL for "/", "." and
 * "..". */
int folder_open_parent(struct folder *folder, const char *path, const char **name);
int folder_open_below(struct folder *folder, const struct folder *parent, const char *name);
void folder_close(struct folder *folder); /* also after a failed open; keeps the reason */

int folder_make(const struct folder *folder, const char *name); /* -EEXIST: for any kind of name */
int folder_make_path(const char *path);                         /* mkdir -p */
int folder_make_parent(const char *path);                       /* mkdir -p of the parent of path */
int folder_sync(const struct folder *folder);                   /* makes its names durable */

/* Called for each name, in no order, never "." and ".."; type: DT_REG, DT_DIR, DT_LNK, ... of the
 * name itself, never DT_UNKNOWN. A non-zero result ends the listing with that code. */
typedef int (*folder_visit)(void *context, const char *name, unsigned char type);
int folder_list(const struct folder *folder, folder_visit visit, void *context);

/* List all names of a folder, sorted; none on failure. Release in either case. */
struct folder_names {
    char **list;
    size_t count;
};
int folder_names_read(struct folder_names *names, const struct folder *folder);
int folder_names_of(struct folder_names *names, const char *path); /* as for folder_open() */
/* Return the paths that match a shell pattern, as glob(3). */
int folder_names_matching(struct folder_names *names, const char *pattern);
void folder_names_release(struct folder_names *names);

/* Status of the name itself, even if it is a link. */
int folder_stat(const struct folder *folder, const char *name, struct stat *status);
/* Open a regular file; flags as for file_open(). */
int folder_open_file(const struct folder *folder, const char *name, int flags, struct stat *status);
/* Create a file to read and write; -EEXIST if the name exists, even as a dangling link. */
int folder_create_file(const struct folder *folder, const char *name);

/* Does the path, relative to the folder, resolve to something inside it, links included? Returns
 * false if the kernel cannot tell (no openat2(2) before 5.6). */
bool folder_is_beneath(const struct folder *folder, const char *below);

/* Remove a file or an empty folder. Returns -ESTALE if `made` is not NULL and the name is no longer
 * that file: only what the caller created is removed. */
int folder_remove(const struct folder *folder, const char *name, const struct stat *made);

/* Rename a file or folder within one file system. Without replace: -EEXIST if the name exists,
 * decided atomically by the kernel. With replace: only a regular file replaces a file, only an
 * empty folder a folder. */
int folder_rename(const struct folder *from, const char *name, const struct folder *to,
                  const char *new_name, bool replace);

/* May this be removed? below: its path below the tree, "" for the top. status: of the name
 * itself. */
typedef bool (*folder_is_ours)(void *context, const char *below, const struct stat *status);

/* Remove a file or a whole tree. The tree is walked first, and nothing is removed if something must
 * stay: a link, a device, a FIFO, a file with several links, one of another user or on another file
 * system, or one that is_ours() rejects (NULL: accepts all). Returns -EPERM with a reason that
 * names it, or -ENOENT. */
int folder_remove_tree(const struct folder *parent, const char *name, folder_is_ours is_ours,
                       void *context);

#endif
