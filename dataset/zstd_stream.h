/* SPDX-License-Identifier: Apache-2.0
 *
 * zstd_stream: one Zstandard stream, from memory to memory. Knows no files. One thread per stream.
 */
#ifndef IOBENCH_DATASET_ZSTD_STREAM_H
#define IOBENCH_DATASET_ZSTD_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zstd_stream;

/* Begin a stream, with *stream NULL the first time. Returns 0, -ENOMEM, or -ENOTSUP with a reason
 * if this build lacks libzstd. */
int zstd_stream_begin(struct zstd_stream **stream);
void zstd_stream_free(struct zstd_stream *stream); /* NULL is fine */

/* Inflate from the avail bytes at from, into at most count bytes at to. Sets *used and *made, and
 * *complete if a frame ended exactly here. Returns NULL, or what is wrong. */
const char *zstd_stream_step(struct zstd_stream *stream, const uint8_t *from, size_t avail,
                             size_t *used, uint8_t *to, size_t count, size_t *made, bool *complete);

#endif
