/* SPDX-License-Identifier: Apache-2.0
 *
 * handles: the open shards of one reader. It keeps as many open as the limit on descriptors
 * allows and closes the one used longest ago when another is wanted, so that a data set of a
 * million files works under any RLIMIT_NOFILE. It also notices files that are no longer what was
 * indexed. It knows nothing of how bytes are read.
 *
 * handles_acquire() and handles_release() belong to the reader's thread. handle_open() may be
 * called from any thread that works for a taken handle: opening takes long on a network.
 */
#ifndef IOBENCH_READERS_HANDLES_H
#define IOBENCH_READERS_HANDLES_H

#include "dataset/catalog.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct handle {
    uint32_t shard;
    const char *path; /* this and the next three: as the catalog has it */
    uint64_t bytes;
    int64_t mtime_ns;
    uint32_t shard_flags; /* enum shard_flags */
    bool opened;
    bool opening;       /* for who opens without waiting */
    int fd;             /* -1 until handle_open(), and when mapped */
    void *remote;       /* what handles->forget() ends, when HANDLES_REMOTE */
    const uint8_t *map; /* the whole file, when HANDLES_MAP; NULL for an empty one */
    uint64_t map_bytes;
    /* private to handles.c */
    pthread_mutex_t lock; /* of the opening: two workers may want the same shard */
    uint32_t users;
    uint32_t older, newer; /* among the unused ones */
    uint64_t checked_ns, inode;
};

enum handles_flags {
    HANDLES_DIRECT = 1, /* O_DIRECT */
    HANDLES_RANDOM = 2, /* tell the kernel not to read ahead */
    HANDLES_MAP = 4,    /* map each file */
    HANDLES_REMOTE = 8, /* no descriptors: remote is the caller's, opened by itself */
};

struct handles {
    const struct catalog *catalog;
    uint32_t flags;
    uint32_t alignment; /* of offset, length and memory: 1, or what O_DIRECT asks for here */
    uint32_t capacity;
    struct handle *all;
    void (*forget)(void *owner, struct handle *handle); /* set after create, with owner */
    void *owner;
    /* private */
    uint32_t used, promised;
    uint32_t oldest, newest;
    uint32_t *where; /* shard -> 1 + index in all, 0 when it has none */
};

/* busiest: handles that may be taken at one time; of remote ones so many are kept, no more. limit:
 * handles at most; 0: as many as the system allows. 0, or a negative errno with a reason. */
int handles_create(struct handles *handles, const struct catalog *catalog, uint32_t flags,
                   uint32_t busiest, uint32_t limit);
/* Maps still lent end here. Copes with a failed or missing create. */
void handles_destroy(struct handles *handles);

/* The handle of a shard, not yet opened perhaps; NULL when all are in use. Give it back once for
 * each time it was taken. */
struct handle *handles_acquire(struct handles *handles, uint32_t shard);
void handles_release(struct handles *handles, struct handle *handle);

/* Open it unless it is, or is remote, and check that the file still is the one that was indexed. 0,
 * -ESTALE when it is not, or the errno of open(). No reason is recorded: reader_explain() words it
 * on the reader's thread. */
int handle_open(const struct handles *handles, struct handle *handle);

/* True when handle_open() would have nothing to do but to say 0. Never waits. */
bool handle_is_fresh(struct handle *handle);

/* A read at offset brought too little: got bytes, all in all. Where it goes on, from the offset: a
 * multiple of the alignment. -ESTALE when the file has ended there, -EIO when this is the
 * short_reads-th time and too often. */
int64_t handle_resume(const struct handles *handles, const struct handle *handle, uint64_t offset,
                      uint32_t got, uint32_t short_reads);

/* For who opens without waiting, with handles_open_flags(): the handle takes fd over, closes it
 * also on failure. Codes as above. */
int handles_open_flags(const struct handles *handles);
int handle_adopt(const struct handles *handles, struct handle *handle, int fd);

#endif
