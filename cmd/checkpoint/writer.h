/* SPDX-License-Identifier: Apache-2.0
 *
 * writer: writes chunks of memory to files with several writes in flight.
 *
 * A write is named by the index of its buffer. The buffer belongs to the writer until writer_wait()
 * returns its index. One thread per writer: the one that opened it. Only writer.c calls through the
 * ops; it continues short writes, takes times and counts.
 */
#ifndef IOBENCH_CMD_CHECKPOINT_WRITER_H
#define IOBENCH_CMD_CHECKPOINT_WRITER_H

#include "base/plugin.h"
#include "base/stats.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct writer_config {
    const struct iovec *buffers; /* `depth` of equal size; may be registered */
    uint32_t depth;              /* at most this many writes in flight */
    bool direct;                 /* the files bypass the page cache */
    uint64_t timeout_ns;         /* fail after this long without a completion; 0: never */
};

struct writer_request {
    int fd;
    uint32_t index; /* of the buffer */
    uint32_t from, bytes;
    uint64_t offset; /* file offset of the buffer's first byte */
    uint64_t submit_ns;
};

struct writer_completion {
    uint32_t index;    /* of the buffer */
    int result;        /* bytes, or a negative errno */
    uint64_t ended_ns; /* when it completed, or was found to have */
};

enum { WRITER_ENGINE_BYTES = 128 };

struct writer_ops {
    struct plugin plugin;
    /* engine: filled with a description ("io_uring, registered buffers"). Returns 0, or a negative
     * errno without a reason if this machine refuses it. */
    int (*open)(void *state, const struct writer_config *config, char engine[WRITER_ENGINE_BYTES]);
    /* Called after every open, even a failed one, with nothing in flight. */
    void (*close)(void *state);
    void (*submit)(void *state, const struct writer_request *request);
    /* Wait at most wait_ns for a completion. Returns 1 with one, 0 on time-out, or a negative errno
     * with a reason. */
    int (*reap)(void *state, struct writer_completion *done, uint64_t wait_ns);
};

extern const struct plugin *const writer_registry[];        /* in order of preference */
extern const struct writer_ops writer_uring, writer_pwrite; /* for the registry alone */

struct writer {
    const struct writer_ops *ops;
    void *state;
    struct writer_config config;
    struct writer_request *requests; /* one per buffer */
    uint32_t in_flight;
    bool is_held; /* after writer_close(): the kernel may still read the buffers, never free them */
    char engine[WRITER_ENGINE_BYTES];
    struct histogram latency_ns; /* per write */
};

/* plugin: NULL for the first that works on this machine. Returns 0 or a negative errno with a
 * reason; call writer_close() either way. */
int writer_open(struct writer *writer, const struct plugin *plugin,
                const struct writer_config *config);
/* Wait for the writes in flight, 10 s at most, and close. Again: no-op. */
void writer_close(struct writer *writer);

/* Submit a write of the first `bytes` of a free buffer. */
void writer_write(struct writer *writer, uint32_t index, int fd, uint32_t bytes, uint64_t offset);
/* Wait at most wait_ns for a write to complete; path: for reasons. Returns the index of its buffer,
 * -EAGAIN without a reason if none completed, or another negative errno with a reason if a write or
 * the writer failed. */
int writer_wait(struct writer *writer, uint64_t wait_ns, const char *path);

#endif
