/* SPDX-License-Identifier: Apache-2.0
 *
 * inflate: read a compressed file as an inflated stream, from the start. Knows nothing of the
 * stream's contents. One thread per file; memory is fixed (about half a MiB; the window of zstd, at
 * most 128 MiB, besides). */
#ifndef IOBENCH_DATASET_INFLATE_H
#define IOBENCH_DATASET_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inflate;

/* compression: SHARD_GZIP (RFC 1952) or SHARD_ZSTD (RFC 8878), whose members or frames follow each
 * other as one stream, or SHARD_ZLIB (RFC 1950). Other flags are ignored. Returns NULL with a
 * reason and *code. */
struct inflate *inflate_open(const char *path, uint32_t compression, int *code);
/* Reopen for another file, or the same file from its start; allocates only what opening a file
 * needs. Returns 0 or a negative errno with a reason. */
int inflate_reopen(struct inflate *inflate, const char *path, uint32_t compression);
void inflate_close(struct inflate *inflate); /* NULL is fine */

/* Read, or skip if to is NULL, the next count bytes. Returns their number, fewer only at the end of
 * the stream; -EBADMSG if the file is damaged or truncated. */
int64_t inflate_read(struct inflate *inflate, void *to, uint64_t count);

/* Reject a stream that exceeds this multiple of the file size, with -EFBIG; the first 64 MiB are
 * always accepted, and 0 accepts everything. Valid until the next open. */
void inflate_limit(struct inflate *inflate, uint64_t times);

/* Offset of the next byte in the stream, and bytes of the file read so far. */
uint64_t inflate_stream_offset(const struct inflate *inflate);
uint64_t inflate_file_offset(const struct inflate *inflate);

/* Zstandard streams from memory to memory, for dataset/inflate.c; one thread per stream. */
struct zstd_ops {
    /* Begin a stream, with *stream NULL the first time. Returns 0, or -ENOMEM with a reason. */
    int (*begin)(void **stream);
    void (*free)(void *stream); /* NULL is fine */
    /* Inflate from the avail bytes at from, into at most count bytes at to. Sets *used and *made,
     * and *complete if a frame ended exactly here. Returns NULL, or what is wrong. */
    const char *(*step)(void *stream, const uint8_t *from, size_t avail, size_t *used, uint8_t *to,
                        size_t count, size_t *made, bool *complete);
};
extern const struct zstd_ops zstd_stream;         /* for dataset/registry.c */
extern const struct zstd_ops *const zstd_present; /* NULL: this build lacks libzstd */

#endif
