/* SPDX-License-Identifier: Apache-2.0
 *
 * sink: a shard being written: buffered, under a temporary name, renamed when it is complete.
 * One thread per sink.
 */
#ifndef IOBENCH_FORMATS_SINK_H
#define IOBENCH_FORMATS_SINK_H

#include "dataset/store.h"

struct sink {
    struct store_draft draft;
    uint8_t *buffer;
    size_t used;
    uint64_t written_bytes; /* behind the buffer, in the file */
};

/* 0 or a negative errno. Close it in either case. */
int sink_open(struct sink *sink, const char *path);
int sink_write(struct sink *sink, const void *bytes, size_t count);
int sink_printf(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* commit false, or a failed write before: nothing is left behind. A zeroed sink is fine. */
int sink_close(struct sink *sink, bool commit);

/* Where the next byte goes. */
static inline uint64_t sink_offset(const struct sink *sink)
{
    return sink->written_bytes + sink->used;
}

#endif
