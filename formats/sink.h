/* SPDX-License-Identifier: Apache-2.0
 *
 * sink: write a shard: buffered, under a temporary name, renamed when complete. One thread per
 * sink. */
#ifndef IOBENCH_FORMATS_SINK_H
#define IOBENCH_FORMATS_SINK_H

#include "dataset/store.h"

struct sink {
    struct store_file *file;
    uint8_t *buffer;
    size_t used;
    uint64_t written_bytes; /* file offset of the end of the buffer */
};

/* Returns 0 or a negative errno. Close it in either case. */
int sink_open(struct sink *sink, const char *path);
int sink_write(struct sink *sink, const void *bytes, size_t count);
int sink_printf(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* If commit is false or a write has failed, nothing is left on storage. A zeroed sink is fine. */
int sink_close(struct sink *sink, bool commit);

/* Return the file offset of the next byte. */
static inline uint64_t sink_offset(const struct sink *sink)
{
    return sink->written_bytes + sink->used;
}

#endif
