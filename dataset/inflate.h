/* SPDX-License-Identifier: Apache-2.0
 *
 * inflate: a gzip or zlib file read as the stream it holds, from the front. It knows nothing of
 * what the stream means. One thread per file; memory is fixed (about half a MiB).
 */
#ifndef IOBENCH_DATASET_INFLATE_H
#define IOBENCH_DATASET_INFLATE_H

#include <stdint.h>

enum inflate_wrapper {
    INFLATE_GZIP, /* RFC 1952; several members follow each other as one stream */
    INFLATE_ZLIB, /* RFC 1950 */
};

struct inflate;

/* NULL with a reason and *code. */
struct inflate *inflate_open(const char *path, enum inflate_wrapper wrapper, int *code);
/* The same for another file, or the same from its front; allocates only what opening a
 * file takes. 0 or a negative errno with a reason. */
int inflate_reopen(struct inflate *inflate, const char *path, enum inflate_wrapper wrapper);
void inflate_close(struct inflate *inflate); /* NULL is fine */

/* Read, or skip if to is NULL, the next count bytes. Returns their number, fewer only at the end of
 * the stream; -EBADMSG if the file is damaged or truncated. */
int64_t inflate_read(struct inflate *inflate, void *to, uint64_t count);

/* Refuse a stream that exceeds this multiple of the file size, with -EFBIG; the first 64
 * MiB are always taken, and 0 takes everything. Until the next open. */
void inflate_limit(struct inflate *inflate, uint64_t times);

/* Offset of the next byte in the stream, and bytes of the file read so far. */
uint64_t inflate_stream_offset(const struct inflate *inflate);
uint64_t inflate_file_offset(const struct inflate *inflate);

#endif
