/* SPDX-License-Identifier: Apache-2.0
 *
 * reader: reads byte ranges of shards into memory. Knows neither formats nor shuffles nor batches.
 *
 * One thread (the loader's) opens, submits, reaps and closes. Requests complete in any order. A
 * request and its buffer belong to the reader from submit until it is reaped. Only readers/reader.c
 * calls through the ops: it checks the contract, takes times and counts.
 */
#ifndef IOBENCH_READERS_READER_H
#define IOBENCH_READERS_READER_H

#include "base/atomic.h"
#include "base/fail.h"
#include "base/plugin.h"
#include "base/stats.h"
#include "dataset/catalog.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

struct numa;

enum { READER_PARTS_MAX = 1024 }; /* UIO_MAXIOV */

struct read_request {
    /* Set by the caller. If the reader's alignment A > 1, offset, bytes and buffer are multiples of
     * A; the range may extend past the end of the file. */
    uint64_t offset;
    uint32_t shard;
    uint32_t bytes;  /* to read: whole records, plus alignment */
    uint32_t needed; /* fewer bytes mean that the file was truncated */
    uint32_t region; /* index in reader_config.regions of the one that holds buffer */
    void *buffer;    /* NULL for zero-copy readers */
    /* Only if the reader scatters: where the bytes go instead, one part after the other, `bytes` in
     * all. The reader changes them while it reads. */
    struct iovec *parts;
    uint32_t part_count; /* 0: none, read into buffer; at most READER_PARTS_MAX */
    void *owner;         /* the caller's */
    /* Set by the reader. */
    const void *data;     /* the bytes: buffer, or mapped pages until reader_release() */
    int result;           /* bytes read, >= needed; or a negative errno, see reader_explain().
                             -EAGAIN: refused like by submit(), and nothing in flight will make
                             room; submit it again after a release */
    const char *why;      /* with a negative result: a static text that says more; or NULL */
    uint32_t short_reads; /* times the read was resumed */
    /* After -ETIMEDOUT: the kernel may still write to buffer. Never reuse or free it. */
    bool held;
    void *mapping; /* the plug-in's, until release */
    /* Set by reader.c: issued by the user, submitted to the reader that reads it, reaped by the
     * user. Issued and submitted: when the reads start, if the reader batches. */
    uint64_t issue_ns, submit_ns, complete_ns;
    struct read_request *next_prepared;
};

/* Input of open(). */
struct reader_config {
    const struct catalog *catalog;
    const struct iovec *regions; /* memory that holds the buffers; may be registered */
    uint32_t region_count;
    uint32_t depth;      /* at most this many requests in flight; >= 1 */
    uint64_t timeout_ns; /* a request older than this fails with -ETIMEDOUT; 0: never */
    bool in_order;   /* the requests of each shard come from front to back, nearly without gaps */
    bool falls_back; /* if it cannot work here it may read another way, with a notice; else
                        open() fails: the user chose this reader */
};

/* Output of open(). */
struct reader_traits {
    uint32_t alignment;  /* of offset, length and memory; 1: none */
    bool zero_copy;      /* data points into the reader's mapped pages; requests have no buffer */
    bool no_bytes;       /* reads nothing: parse and decode are skipped */
    bool in_order;       /* offsets within a shard must not decrease */
    bool scatters;       /* reads into the parts of a request */
    bool batches;        /* reads start with the next reap(), or with a submit() that says so */
    bool is_passthrough; /* as in reader_ops; set by reader.c */
    bool is_client;      /* asks the server itself (ops->scheme); set by reader.c */
    char engine[192];    /* what is used, e.g. "io_uring, O_DIRECT, registered buffers" */
    char notice[256];    /* one line for the user if that is not what was asked for; else "" */
};

/* Something that a reader can use if this machine has it. */
struct reader_offer {
    const char *name;
    int code;           /* 0, or why it is missing: a negative errno */
    const char *found;  /* what it is good for */
    const char *remedy; /* what to do if it is missing */
};
typedef void (*reader_tell)(void *context, const struct reader_offer *offer);

struct reader_ops {
    struct plugin plugin;
    /* Known before open(). */
    const char *scheme;  /* of the only URLs it reads ("nfs://"); NULL: local files only */
    bool any_storage;    /* reads through dataset/store.h, whatever a path names */
    bool inflates;       /* reads compressed shards, and only those */
    bool bypasses_cache; /* always; readers that may have an option "direct" */
    bool is_passthrough; /* sends commands to the disk itself: the kernel neither caches nor counts
                            its reads */
    bool falls_back;    /* where it is not usable, open() can read another way; see reader_config */
    const char *remedy; /* what to do on a machine that refuses it; may be NULL */
    void (*offers)(reader_tell tell, void *context); /* may be NULL */
    int (*open)(void *state, const void *settings, const struct reader_config *config,
                struct reader_traits *traits);
    /* Called after every open, even a failed one. Nothing is in flight except abandoned (held)
     * reads. */
    void (*close)(void *state);
    /* Returns 0; 1 if it started all that was prepared, at submit_ns, which it sets; -EAGAIN if
     * full, or another negative errno. -EAGAIN with nothing in flight: only a release can make
     * room. */
    int (*submit)(void *state, struct read_request *request);
    /* Return up to max finished requests; if none, wait for one at most wait_ns. Returns their
     * count, 0 on time-out, or a negative errno if the reader itself is broken (for a failed
     * request see result). */
    int (*reap)(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns);
    /* Check after the last read that all were right. Nothing is in flight. Returns 0 or a negative
     * errno with a reason. NULL: each read is checked by itself. */
    int (*settle)(void *state);
    /* Release the mapped pages of a request; NULL if !zero_copy. release() and wake(): any thread
     * until close. */
    void (*release)(void *state, struct read_request *request);
    /* Make the waiting reap return, or the next one not wait. NULL if reap never waits. */
    void (*wake)(void *state);
};

extern const struct plugin *const reader_registry[];

static inline const struct reader_ops *reader_of(const struct plugin *plugin)
{
    return (const struct reader_ops *)(const void *)plugin; /* plugin is the first member */
}

/* Return whether the reader serves paths of this scheme (struct store_ops). */
bool reader_serves(const struct plugin *reader, const char *scheme);
/* Return the first reader of the registry, in order of preference, that serves the data and works
 * here, or can fall back. NULL: none. */
const struct plugin *reader_auto(const char *scheme, bool compressed);

/* Try everything that this machine may offer to a reader and pass each result to tell(); none if
 * the reader does not work at all. */
void reader_offers(const struct plugin *reader, reader_tell tell, void *context);

struct reader_figures {
    uint64_t requests, bytes, errors, short_reads;
    struct histogram latency_ns; /* issue to reap */
};

struct reader {
    const struct reader_ops *ops;
    void *state;
    struct reader_config config;
    struct reader_traits traits;
    uint32_t in_flight;
    uint32_t borrowed;
    uint32_t held;                 /* buffers of timed-out reads: if any, never free the regions */
    struct read_request *prepared; /* since the last reap, if the reader batches */
    struct reader_figures figures;
};

/* Open on the thread that will use it. Returns 0 or a negative errno with a reason; call
 * reader_close() either way. */
int reader_open(struct reader *reader, const struct plugin_choice *choice,
                const struct reader_config *config);
/* Return the time within which a working reader finishes any request. */
uint64_t reader_patience_ns(const struct reader *reader);
/* Call before reader_close() unless something has failed. Returns 0 or why what was read may be
 * wrong, with a reason. */
int reader_settle(struct reader *reader);
/* Wait for the requests in flight, at most reader_patience_ns(). reader->held stays readable. */
void reader_close(struct reader *reader);
int reader_submit(struct reader *reader, struct read_request *request);
int reader_reap(struct reader *reader, struct read_request **done, uint32_t max, uint64_t wait_ns);
void reader_release(struct reader *reader, struct read_request *request);
/* Interrupt the wait of the thread that reaps. Any thread. */
void reader_wake(const struct reader *reader);

/* Skip the first `bytes` of the parts: they have been read. */
static inline void read_parts_skip(struct iovec **parts, uint32_t *count, uint64_t bytes)
{
    for (; *count > 0 && bytes >= (*parts)->iov_len; ++*parts, --*count)
        bytes -= (*parts)->iov_len;
    if (bytes > 0) {
        (*parts)->iov_base = (char *)(*parts)->iov_base + bytes;
        (*parts)->iov_len -= bytes;
    }
}

/* Record why a request failed (file, offset, cause, remedy). Returns its result. reader_reap() has
 * already done so for the last failed request it returned. */
int reader_explain(const struct reader *reader, const struct read_request *request);

/* Requests that the next reap returns, at most as many as are in flight. */
struct request_ring {
    struct read_request **entries;
    uint32_t at, count, depth;
};

/* Returns 0 or -ENOMEM with a reason. Free the entries. */
int request_ring_open(struct request_ring *ring, uint32_t depth);
/* Move up to max requests to done, the oldest first. Returns their count. */
uint32_t request_ring_take(struct request_ring *ring, struct read_request **done, uint32_t max);

static inline void request_ring_add(struct request_ring *ring, struct read_request *request)
{
    const uint32_t end = ring->at + ring->count++; /* a division takes longer than the rest */

    assert(ring->count <= ring->depth);
    ring->entries[end < ring->depth ? end : end - ring->depth] = request;
}

/* ---- waker ----
 *
 * Wakes a reader that waits in the kernel for descriptors or completions. The reader also waits
 * for the waker's descriptor, which becomes readable. waker_wake(): any thread. All else: the
 * reader's thread. */

struct waker {
    int fd; /* an eventfd */
    struct flag is_asked;
};

/* Returns 0 or a negative errno with a reason; call waker_close() either way. */
static inline int waker_open(struct waker *waker)
{
    *waker = (struct waker){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return waker->fd < 0 ? fail(errno, "eventfd: %s", fail_errno_text(errno)) : 0;
}

static inline void waker_close(struct waker *waker)
{
    if (waker->fd >= 0)
        close(waker->fd);
    waker->fd = -1;
}

/* Only the first of several calls enters the kernel. A full eventfd is readable, too. */
static inline void waker_wake(struct waker *waker)
{
    if (!flag_test_and_set(&waker->is_asked))
        eventfd_write(waker->fd, 1);
}

/* Return true if the waker was woken since the last call. */
static inline bool waker_was_asked(struct waker *waker)
{
    return flag_test_and_clear(&waker->is_asked);
}

/* Drain the readable descriptor before waiting for it again. */
static inline void waker_silence(const struct waker *waker)
{
    eventfd_t count;

    eventfd_read(waker->fd, &count);
}

/* ---- parallel_reader ----
 *
 * One reader run on several I/O threads. Each thread has its own instance of the reader (ring,
 * open files, ...) and its own share of the memory, both on one NUMA node; nodes are assigned
 * round robin. Callers see one ordinary reader. It is not registered: --io-threads selects it.
 *
 * A request goes to the thread that owns its buffer's region, or, without a buffer or if shards
 * must be read in order, to the thread that owns its shard. reap() wakes threads that wait for
 * storage when they have new requests, so no read waits for another one to finish. */

struct parallel_reader_settings {
    const struct plugin_choice *reader; /* run on each thread */
    uint32_t count;                     /* threads; >= 1 */
    const struct numa *numa;
};

/* Takes parallel_reader_settings. The regions in its config are `count` equal groups, one per
 * thread. */
extern const struct reader_ops reader_parallel;

/* ---- service ----
 *
 * Measures how fast a storage serves random reads of one size with a fixed number in flight. Reads
 * start at multiples of their size, equally often anywhere in all files. The clock starts once as
 * many reads have completed as are in flight, and stops after the given time, but not before twice
 * as many more have. One thread. */

enum { SERVICE_ENGINE_BYTES = 192 };

struct service {
    const struct catalog *catalog;      /* files; those smaller than a read are left out */
    const struct plugin_choice *reader; /* one that reads into buffers */
    uint32_t read_bytes, depth;
    uint64_t duration_ns, timeout_ns, seed;
    struct iovec memory; /* page-aligned, at least depth x read_bytes */
};

struct service_figures {
    double bytes_per_s;
    uint64_t bytes;               /* of all reads that completed, before the clock started, too */
    double latency_s, latency_cv; /* of a read: mean, and deviation over the mean */
    char engine[SERVICE_ENGINE_BYTES];
};

/* How many reads of this size fit. */
uint64_t service_places(const struct catalog *catalog, uint32_t read_bytes);

/* Returns 0; -EINTR; -ENODATA if no file is as large as a read; or another negative errno with a
 * reason. */
int service_measure(const struct service *service, struct service_figures *figures);

#endif
