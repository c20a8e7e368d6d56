/* SPDX-License-Identifier: Apache-2.0
 *
 * store: files by name, wherever they are: indexing, packing and verifying go through it, off the
 * clock. The path tells where: nfs://server/export/path is asked of that server by libnfs, every
 * other path of the kernel. On the clock, data is read by readers, never from here.
 *
 * Any thread, one at a time for each open file. A call that gets no answer fails after the
 * time-out. 0, a count, or a negative errno with a reason that names the path.
 */
#ifndef IOBENCH_DATASET_STORE_H
#define IOBENCH_DATASET_STORE_H

#include "base/draft.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum store_kind { STORE_FILE, STORE_FOLDER, STORE_OTHER };

/* A time as shards keep it. Seconds after the year 2262 wrap: they are only ever compared. */
static inline int64_t store_time_ns(uint64_t seconds, uint64_t nanoseconds)
{
    return (int64_t)(seconds * 1000000000u + nanoseconds);
}

struct store_status {
    enum store_kind kind; /* of what a link points to */
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t device, inode;
    uint32_t owner, mode; /* user and permission bits, as for stat(2) */
};

struct store_entry {
    const char *name;
    enum store_kind kind;
    bool is_link;
    const struct store_status *status; /* where it comes with the name; else NULL: store_stat() */
};

/* One name of a folder, in no order; never "." and "..". Not 0 ends the listing with that code. */
typedef int (*store_visit)(void *context, const struct store_entry *entry);

struct store_file {
    const struct store_ops *ops;
    char *path;
    struct store_status status; /* when it was opened */
};

enum store_access {
    STORE_READ,
    STORE_CREATE, /* -EEXIST when the name is taken, also by a link */
    STORE_EXTEND  /* as it is; made when it is missing; never through a link */
};

/* One kind of storage. Only dataset/store.c calls through the ops: it finds them by the path and
 * adds nothing to reasons. */
struct store_ops {
    const char *scheme;  /* what its paths begin with; "": all that nobody else takes */
    const char *missing; /* not built: what to do about it; then all below is NULL */
    /* Of a server, whose bytes never enter this machine's page cache: */
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
    /* The range will be read soon; no bytes: the file is read here and there. May be NULL. */
    void (*advise)(struct store_file *file, uint64_t offset, uint64_t bytes);
    /* Past a hole at offset; the file's size behind the last byte. NULL: files have no holes. */
    uint64_t (*next_data)(struct store_file *file, uint64_t offset);
    /* A new file that settle() closes and, with commit, gives its name. *draft_path: free() it. */
    int (*draft)(const char *path, const struct file_draft_options *options,
                 struct store_file **file, char **draft_path);
    int (*settle)(struct store_file *file, bool commit);
    int (*rename)(const char *from, const char *to); /* lasting, as after fsync of the folder */
    int (*remove)(const char *path);                 /* a file, a link or an empty folder */
    int (*make_folder)(const char *path);
    int (*free_bytes)(const char *path, uint64_t *bytes);
};

extern const struct store_ops *const store_registry[];

/* Before other threads are there. How long a call may wait for an answer; 0: for ever. */
void store_set_timeout(uint64_t timeout_ns);
uint64_t store_timeout(void);

/* The storage that serves the path, for its traits. */
const struct store_ops *store_of(const char *path);
/* Whether the kernel serves it, so that open(2) will do. */
bool store_is_local(const char *path);
/* 0, or -ENOTSUP with a reason: this build lacks the store. */
int store_check(const char *path);

int store_stat(const char *path, struct store_status *status);
bool store_exists(const char *path);
bool store_is_folder(const char *path);
int store_list(const char *path, store_visit visit, void *context);

/* Regular files only: a FIFO, a device, a folder is refused at once, and the reason says what is
 * there. */
int store_open(const char *path, enum store_access access, struct store_file **file);
/* Fewer than bytes only at the end of the file. */
ssize_t store_read_at(struct store_file *file, void *buffer, size_t bytes, uint64_t offset);
int store_write_at(struct store_file *file, const void *buffer, size_t bytes, uint64_t offset);
void store_advise(struct store_file *file, uint64_t offset, uint64_t bytes);
/* The first place from offset on that is in no hole, or the size it was opened with. */
uint64_t store_next_data(struct store_file *file, uint64_t offset);
/* sync: what was written is on stable storage when it returns 0. NULL is fine. */
int store_close(struct store_file *file, bool sync);
/* Up to bytes from the front of a file, 0 when it cannot be read. */
size_t store_peek(const char *path, void *buffer, size_t bytes);
/* The whole file, NUL-terminated behind its end; refused above limit. free() it. */
int store_load(const char *path, size_t limit, char **text, size_t *bytes);

/* May what this program keeps beside the data at root be believed? See file_trusted(). */
int store_trusted(const struct store_file *file, const char *root);

int store_rename(const char *from, const char *to); /* replaces a regular file, an empty folder */
int store_remove(const char *path);                 /* a file, a link or an empty folder */
void store_discard(const char *path); /* the same if it can be; the reason of before stays */
/* A folder with all that is in it; here as folder_remove_tree(). */
int store_remove_tree(const char *path);
int store_make_folders(const char *path);
int store_make_parent(const char *path); /* of a file of this path */
/* For this user, where path is or, when it is not there, would be made. */
int store_free_bytes(const char *path, uint64_t *bytes);

/* As base/draft.h has it, on any storage. An NFS server knows no rename without replacing: there
 * no_replace makes a second name for the file (LINK), which fails when the name is taken. */
struct store_draft {
    struct store_file *file;
    char *path;
    char *draft_path;
};

/* options: NULL for the default. */
int store_draft_open(struct store_draft *draft, const char *path,
                     const struct file_draft_options *options);
int store_draft_commit(struct store_draft *draft);
/* Leave nothing behind, keep the reason; after a commit: no-op. */
void store_draft_abandon(struct store_draft *draft);

#endif
