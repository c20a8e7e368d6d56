/* SPDX-License-Identifier: Apache-2.0
 *
 * reader: brings bytes of shards into memory. It knows nothing of formats, shuffles or batches.
 *
 * One state belongs to one thread (the loader's), which opens, submits, reaps and closes it.
 * Requests complete in any order. A request and its buffer belong to the reader from submit until
 * reap gives it back. Only readers/reader.c calls through the ops: it checks the contract, takes
 * the times and counts.
 */
#ifndef IOBENCH_READERS_READER_H
#define IOBENCH_READERS_READER_H

#include "base/histogram.h"
#include "base/plugin.h"
#include "dataset/catalog.h"

#include <stdbool.h>
#include <sys/uio.h>

struct read_request {
    /* Set by the caller. With a reader of alignment A > 1, offset and buffer are multiples of A
     * and capacity is rounded up to A; the end may lie past the end of the file. */
    uint64_t offset;
    uint32_t shard;
    uint32_t bytes;  /* wanted; a whole number of records, plus alignment */
    uint32_t needed; /* at least so many must come, else the file is shorter than it was */
    uint32_t region; /* which of reader_config.regions buffer lies in */
    void *buffer;    /* NULL for readers that lend */
    void *owner;     /* the caller's */
    /* Set by the reader. */
    const void *data;     /* where the bytes are: buffer, or a loan until reader_release() */
    int result;           /* bytes there, >= needed; or a negative errno, see reader_explain();
                             -EAGAIN: refused, as by submit(), with nothing in flight that would
                             make room; submit it again when a loan was released */
    uint32_t short_reads; /* how often the read had to be resumed */
    /* After -ETIMEDOUT: the kernel may still write to buffer. Never use nor free it again. */
    bool held;
    void *mapping; /* the plug-in's, from reap until release */
    /* Set by reader.c: when its user issued it, when the reader that reads it got it, and when its
     * user got it back. */
    uint64_t issue_ns, submit_ns, complete_ns;
};

/* What open() is told. */
struct reader_config {
    const struct catalog *catalog;
    const struct iovec *regions; /* memory that buffers come from; may be registered */
    uint32_t region_count;
    uint32_t depth;      /* most requests in flight; >= 1 */
    uint32_t bytes_max;  /* largest request */
    uint64_t timeout_ns; /* a request older than this fails with -ETIMEDOUT; 0: never */
    bool falls_back;     /* where it cannot work it may read in another way, with a notice; else
                            open() fails: the user chose it */
};

/* What open() answers. */
struct reader_traits {
    uint32_t alignment; /* of offset, length and memory; 1 when there is none */
    bool zero_copy;     /* data points into the reader's own memory; the caller gives no buffer */
    bool no_bytes;      /* completes at once without data: parse and decode are skipped */
    bool in_order;      /* offsets within a shard must not go back */
    char engine[160];   /* what really runs, e.g. "io_uring, O_DIRECT, registered buffers" */
    char notice[256];   /* one line for the user when it is not what was asked for; else "" */
};

struct reader_ops {
    struct plugin plugin;
    /* Known before open(). */
    const char *scheme;  /* of the only URLs it reads ("nfs://"); NULL: local files alone */
    bool any_storage;    /* reads through dataset/store.h whatever a path names */
    bool inflates;       /* serves shards compressed as a whole, and no others */
    bool bypasses_cache; /* always; readers that can be told to have an option "direct" */
    const char *remedy;  /* what to do on a machine that refuses it; NULL: nothing */
    int (*open)(void *state, const void *settings, const struct reader_config *config,
                struct reader_traits *traits);
    /* After every open, also a failed one. Nothing is in flight but what was given up (held). */
    void (*close)(void *state);
    /* 0, -EAGAIN when full, or failed. -EAGAIN with nothing in flight: released loans alone can
     * make room. */
    int (*submit)(void *state, struct read_request *request);
    /* Gives back up to max done requests. Waits for one at most wait_ns when none is done.
     * Returns the count, 0 when the time is over, or a negative errno when the reader itself is
     * broken (a failed request is not that: see result). */
    int (*reap)(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns);
    /* Ends a loan; NULL if !lends. It and wake() may be called by any thread until close. */
    void (*release)(void *state, struct read_request *request);
    /* Makes the reap that waits now return, else the next one: with what is done, perhaps nothing.
     * NULL when reap never waits. */
    void (*wake)(void *state);
};

extern const struct plugin *const reader_registry[];

static inline const struct reader_ops *reader_of(const struct plugin *plugin)
{
    return (const struct reader_ops *)(const void *)plugin; /* plugin is the first member */
}

/* Whether the reader serves paths of this scheme (struct store_ops). */
bool reader_serves(const struct plugin *reader, const char *scheme);
/* The first reader of the registry, which is in order of preference, that serves the data and works
 * here. NULL: none. */
const struct plugin *reader_auto(const char *scheme, bool compressed);

struct reader_figures {
    uint64_t requests, bytes, errors, short_reads;
    struct histogram latency_ns; /* from issue to reap */
};

struct reader {
    const struct reader_ops *ops;
    void *state;
    struct reader_config config;
    struct reader_traits traits;
    uint32_t in_flight;
    uint32_t borrowed;
    uint32_t held; /* buffers lost to reads that timed out; then the regions must not be freed */
    struct reader_figures figures;
};

/* Open on the thread that will use it. 0 or a negative errno with a reason; call reader_close in
 * either case. */
int reader_open(struct reader *reader, const struct plugin_choice *choice,
                const struct reader_config *config);
/* A reader answers each request within this time, else it is given up as a whole. */
uint64_t reader_patience_ns(const struct reader *reader);
/* Waits for what is in flight, at most the reader's patience; reader->held stays readable. */
void reader_close(struct reader *reader);
int reader_submit(struct reader *reader, struct read_request *request);
int reader_reap(struct reader *reader, struct read_request **done, uint32_t max, uint64_t wait_ns);
void reader_release(struct reader *reader, struct read_request *request);
/* Let the thread that reaps look at something else than reads. Any thread. */
void reader_wake(const struct reader *reader);

/* For a reader made of readers: hand a request that was issued to it, or a release, down to one of
 * them, whose figures another thread keeps. */
int reader_pass_submit(struct reader *reader, struct read_request *request);
void reader_pass_release(const struct reader *reader, struct read_request *request);

/* Record the reason of a failed request (file, offset, what was wrong, what to do) and return its
 * result. reader_reap() has done so for the last failed one that it gave back. */
int reader_explain(const struct reader *reader, const struct read_request *request);

#endif
