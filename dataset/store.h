/* SPDX-License-Identifier: Apache-2.0
 *
 * store: files by name on any storage; indexing, packing and verifying use it, off the clock. A
 * path's scheme selects the storage: nfs://server/export/path goes through libnfs, other paths
 * through the kernel. On the clock, readers read the data, never this.
 *
 * Any thread, one at a time per open file. A call without a reply fails after the time-out. Returns
 * 0, a count, or a negative errno with a reason that names the path.
 */
#ifndef IOBENCH_DATASET_STORE_H
#define IOBENCH_DATASET_STORE_H

#include "base/draft.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum store_kind { STORE_FILE, STORE_FOLDER, STORE_OTHER };

/* Time stamp of shards. Wraps after the year 2262: only compared for equality. */
static inline int64_t store_time_ns(uint64_t seconds, uint64_t nanoseconds)
{
    return (int64_t)(seconds * 1000000000u + nanoseconds);
}

static inline enum store_kind store_kind_of(uint64_t mode)
{
    return S_ISREG(mode) ? STORE_FILE : S_ISDIR(mode) ? STORE_FOLDER : STORE_OTHER;
}

struct store_status {
    enum store_kind kind; /* of a link's target */
    uint64_t bytes;
    int64_t mtime_ns;
    int64_t ctime_ns; /* time of its last change, which a copy does not preserve */
    uint64_t device, inode;
    uint32_t owner, mode; /* user and permission bits, as for stat(2) */
};

struct store_entry {
    const char *name;
    enum store_kind kind;
    bool is_link;
    const struct store_status *status; /* if listed with the name; else NULL: use store_stat() */
};

/* Called per name of a folder, unordered, without "." and "..". A non-zero result ends the listing.
 */
typedef int (*store_visit)(void *context, const struct store_entry *entry);

struct store_file {
    const struct store_ops *ops;
    char *path;
    struct store_status status; /* when it was opened */
};

enum store_access {
    STORE_READ,
    STORE_CREATE, /* -EEXIST if the name exists, even as a link */
    STORE_EXTEND  /* keep contents, create if missing; never through a link */
};

/* One kind of storage. Only dataset/store.c calls through the ops: it finds them by the path and
 * adds nothing to reasons. */
struct store_ops {
    const char *scheme;  /* prefix of its paths; "": all remaining paths */
    const char *missing; /* what to do if not built in; then all below is NULL */
    /* Set for a server, whose bytes never enter this machine's page cache: */
    const char *client; /* the library that speaks to it ("libnfs") */
    const char *title;  /* its file system, for a report */
    int (*stat)(const char *path, struct store_status *status);
    int (*list)(const char *path, store_visit visit, void *context);
    /* *file: calloc'ed, the member's own struct begins with it. path and ops are set by store.c. */
    int (*open)(const char *path, enum store_access access, struct store_file **file);
    ssize_t (*read_at)(struct store_file *file, void *buffer, size_t bytes, uint64_t offset);
    /* NULL, with draft() and all below it, where the storage can only be read. */
    int (*write_at)(struct store_file *file, const void *buffer, size_t bytes, uint64_t offset);
    int (*close)(struct store_file *file, bool sync);
    /* The range will be read soon; 0 bytes: random access. May be NULL. */
    void (*advise)(struct store_file *file, uint64_t offset, uint64_t bytes);
    /* Skip a hole at offset; returns the file size past the last data. NULL: no holes. */
    uint64_t (*next_data)(struct store_file *file, uint64_t offset);
    /* Create a file that settle() closes and, with commit, renames. */
    int (*draft)(const char *path, struct store_file **file);
    int (*settle)(struct store_file *file, bool commit);
    int (*rename)(const char *from, const char *to); /* durable, as after fsync of the folder */
    int (*remove)(const char *path);                 /* a file, a link or an empty folder */
    int (*make_folder)(const char *path);
    int (*free_bytes)(const char *path, uint64_t *bytes);
};

extern const struct store_ops store_local, store_nfs; /* for dataset/registry.c */
extern const struct store_ops *const store_registry[];

/* Set the longest wait for a reply; 0: forever. Call before starting threads. */
void store_set_timeout(uint64_t timeout_ns);
uint64_t store_timeout(void);

/* Return the storage that serves the path, for its traits. */
const struct store_ops *store_of(const char *path);
/* Return whether the kernel serves the path, so open(2) works. */
bool store_is_local(const char *path);
/* 0, or -ENOTSUP with a reason: this build lacks the store. */
int store_check(const char *path);

int store_stat(const char *path, struct store_status *status);
struct store_status store_status_of(const struct stat *found);
bool store_exists(const char *path);
bool store_is_folder(const char *path);
/* Return whether both exist and are the same file or folder, by any name. */
bool store_is_same(const char *a, const char *b);
/* Return whether path is the folder or inside it, or would be: it need not exist. So what is
 * written does not become part of what is read. */
bool store_is_within(const char *path, const char *folder);
int store_list(const char *path, store_visit visit, void *context);

/* Regular files only: rejects FIFOs, devices and folders at once, with the kind as the reason. */
int store_open(const char *path, enum store_access access, struct store_file **file);
/* Fewer than bytes only at the end of the file. */
ssize_t store_read_at(struct store_file *file, void *buffer, size_t bytes, uint64_t offset);
int store_write_at(struct store_file *file, const void *buffer, size_t bytes, uint64_t offset);
void store_advise(struct store_file *file, uint64_t offset, uint64_t bytes);
/* Return the first offset >= offset outside a hole, or the size at open. */
uint64_t store_next_data(struct store_file *file, uint64_t offset);
/* sync: data is on stable storage when it returns 0. NULL is fine. */
int store_close(struct store_file *file, bool sync);
/* Read at most bytes from the start of a file; 0 if unreadable. */
size_t store_peek(const char *path, void *buffer, size_t bytes);
/* Read a whole file of at most limit bytes, and append a NUL. free() it. */
int store_load(const char *path, size_t limit, char **text, size_t *bytes);

/* Check that a file kept beside the data at root is trusted, see file_trusted(). */
int store_trusted(const struct store_file *file, const char *root);

int store_rename(const char *from, const char *to); /* replaces a regular file, an empty folder */
int store_remove(const char *path);                 /* a file, a link or an empty folder */
/* Remove a folder and its contents; local ones as folder_remove_tree(). */
int store_remove_tree(const char *path);
int store_make_folders(const char *path);
int store_make_parent(const char *path); /* of a file of this path */
/* Free space for this user where path is, or would be created. */
int store_free_bytes(const char *path, uint64_t *bytes);

/* A draft as in base/draft.h, on any storage: a new file, to replace that of the path. */
int store_draft(const char *path, struct store_file **file);
/* Close the draft and rename it to its path. If code is not 0, remove the draft instead, keep the
 * reason and return code. */
int store_settle(struct store_file *file, int code);

#endif
