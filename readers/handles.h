/* SPDX-License-Identifier: Apache-2.0
 *
 * handles: the open shards of one reader.
 *
 * Keeps as many open as RLIMIT_NOFILE allows and closes the least recently used one to open
 * another, so a data set of a million files works under any limit. Detects files that changed after
 * indexing. Knows nothing of how bytes are read.
 *
 * handles_acquire() and handles_release() belong to the reader's thread. handle_open() may be
 * called by any thread that works on an acquired handle: opening is slow on network storage.
 */
#ifndef IOBENCH_READERS_HANDLES_H
#define IOBENCH_READERS_HANDLES_H

#include "dataset/catalog.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct handle {
    uint32_t shard;
    const struct shard *file; /* as the catalog has it */
    bool opened;
    bool opening;       /* set by readers that open asynchronously */
    int fd;             /* -1 until handle_open(), and when mapped */
    void *remote;       /* the owner's, as with HANDLES_REMOTE; closed by handles->forget(), before
                           fd is */
    const uint8_t *map; /* the whole file, with HANDLES_MAP; NULL if empty */
    uint64_t map_bytes;
    uint64_t checked_ns; /* when it was last compared with what was indexed */
    /* private to handles.c */
    pthread_mutex_t lock; /* with HANDLES_SHARED: two threads may open the same shard */
    uint32_t users;
    uint32_t older, newer; /* neighbours in the list of unused handles */
    uint64_t inode;
};

enum handles_flags {
    HANDLES_DIRECT = 1,  /* O_DIRECT */
    HANDLES_RANDOM = 2,  /* disable the kernel's readahead */
    HANDLES_MAP = 4,     /* map each file */
    HANDLES_REMOTE = 8,  /* no descriptors: the caller opens `remote` */
    HANDLES_SHARED = 16, /* several threads call handle_open() and handle_is_fresh() */
};

enum { HANDLES_ALIGNMENT_MOST = 65536, HANDLE_RECHECK_NS = 1000000000 };

struct handles {
    const struct catalog *catalog;
    uint32_t flags;
    uint32_t alignment; /* of offset, length and memory: 1, or as O_DIRECT requires */
    uint32_t capacity;
    struct handle *all;
    void (*forget)(void *owner, struct handle *handle); /* the caller sets both after create */
    void *owner;
    /* private */
    uint32_t used, promised;
    uint32_t oldest, newest;
    uint32_t *where; /* shard -> 1 + index in all; 0: none */
};

/* busiest: handles acquired at once; exactly this many if remote. limit: at most this many handles;
 * 0: as many as the system allows. Returns 0 or a negative errno with a reason. */
int handles_create(struct handles *handles, const struct catalog *catalog, uint32_t flags,
                   uint32_t busiest, uint32_t limit);
/* Unmaps files still in use. Valid after a failed or missing create. */
void handles_destroy(struct handles *handles);

/* Return the handle of a shard, perhaps not open yet, or NULL if all are in use. Release it as
 * often as it was acquired. */
struct handle *handles_acquire(struct handles *handles, uint32_t shard);
void handles_release(struct handles *handles, struct handle *handle);

/* Open the handle unless it is open or remote, and check that the file is still the indexed one.
 * Returns 0, -ESTALE if it is not, or the errno of open(), without a reason: reader_explain()
 * records it on the reader's thread. */
int handle_open(const struct handles *handles, struct handle *handle);

/* Return true if handle_open() would return 0 without blocking. Never blocks. */
bool handle_is_fresh(struct handle *handle);

/* The same at this time (clock_coarse_ns()), for handles that no other thread opens. */
static inline bool handle_is_fresh_at(const struct handle *handle, uint64_t now_ns)
{
    return handle->opened && now_ns - handle->checked_ns <= HANDLE_RECHECK_NS;
}

/* A read at offset is short: `got` bytes in total. Returns where to resume, relative to offset and
 * aligned; -ESTALE if the file ends there; -EIO after too many short reads. */
int64_t handle_resume(const struct handles *handles, const struct handle *handle, uint64_t offset,
                      uint32_t got, uint32_t short_reads);

/* For asynchronous opens with handles_open_flags(): the handle owns fd, and closes it on failure.
 * Returns as handle_open(). */
int handles_open_flags(const struct handles *handles);
int handle_adopt(const struct handles *handles, struct handle *handle, int fd);

#endif
