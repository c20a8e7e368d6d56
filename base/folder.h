/* SPDX-License-Identifier: Apache-2.0
 *
 * folder: a handle on a folder, and what is done to the names in it.
 *
 * Only folder_open() follows links, because its path is the user's own. A name is one component,
 * never "", "." or ".." or one with a slash, and is never followed when it is a link. So nobody who
 * may write to the folder can turn a call here to a file elsewhere. Any thread. Each call returns
 * 0, a descriptor or a negative errno with a reason that has the path.
 */
#ifndef IOBENCH_BASE_FOLDER_H
#define IOBENCH_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct folder {
    int fd;
    char *path; /* for messages, and for calls that take nothing else */
};

int folder_open(struct folder *folder, const char *path);
/* The folder that path lies in. *name: its last component, within path; NULL: it has none, as "/",
 * "." and "..". */
int folder_open_parent(struct folder *folder, const char *path, const char **name);
int folder_open_below(struct folder *folder, const struct folder *parent, const char *name);
void folder_close(struct folder *folder); /* also after a failed open; the reason stays */

int folder_make(const struct folder *folder, const char *name); /* -EEXIST: any kind of name */
int folder_make_path(const char *path);                         /* mkdir -p of the user's path */
int folder_make_parent(const char *path);                       /* the same of what path lies in */
int folder_sync(const struct folder *folder);                   /* so that names in it last */

/* One name in no order, never "." and ".."; type: DT_REG, DT_DIR, DT_LNK, ... of the name itself,
 * never DT_UNKNOWN. Not 0 ends the listing with that code. */
typedef int (*folder_visit)(void *context, const char *name, unsigned char type);
int folder_list(const struct folder *folder, folder_visit visit, void *context);

/* All names of a folder, sorted; none with a negative errno. Release in either case. */
struct folder_names {
    char **list;
    size_t count;
};
int folder_names_read(struct folder_names *names, const struct folder *folder);
int folder_names_of(struct folder_names *names, const char *path); /* as folder_open() finds it */
/* Paths that match a pattern of the shell, as glob(3). */
int folder_names_matching(struct folder_names *names, const char *pattern);
int folder_names_add(struct folder_names *names, const char *name); /* unsorted; -ENOMEM */
void folder_names_sort(struct folder_names *names);
void folder_names_release(struct folder_names *names);

/* Of the name itself, when it is a link too. */
int folder_stat(const struct folder *folder, const char *name, struct stat *status);
/* A regular file; flags as for file_open(). */
int folder_open_file(const struct folder *folder, const char *name, int flags, struct stat *status);
/* A new file to write and read; -EEXIST when the name is taken, also by a link to nothing. */
int folder_create_file(const struct folder *folder, const char *name);

/* Does the path, relative to the folder, lead to something within it, also through links? False
 * where the kernel cannot tell (openat2(2), before 5.6). */
bool folder_is_beneath(const struct folder *folder, const char *below);

/* Remove a file; a folder, when it is empty. -ESTALE when made is not NULL and the name is not the
 * same file any more: only what the caller made itself goes. */
int folder_remove(const struct folder *folder, const char *name, const struct stat *made);

/* Rename a file or a folder within folders of one file system. Without replace: -EEXIST when the
 * name is taken, decided by the kernel and not by a look before. With it: only a regular file is
 * replaced by a file, only an empty folder by a folder. */
int folder_rename(const struct folder *from, const char *name, const struct folder *to,
                  const char *new_name, bool replace);

/* May this go? below: its path below the tree, "" for the top. status: of the name itself. */
typedef bool (*folder_is_ours)(void *context, const char *below, const struct stat *status);

/* Remove a file, or a folder with all below it. The whole tree is walked first, and nothing is
 * removed when something in it must stay: a link, a device, a FIFO, a file with a second name, one
 * of another user, one on another file system, or one that is_ours() (NULL: knows all) does not
 * know. -EPERM then, and the reason names it. -ENOENT without a name. */
int folder_remove_tree(const struct folder *parent, const char *name, folder_is_ours is_ours,
                       void *context);

#endif
