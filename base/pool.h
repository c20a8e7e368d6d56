/* SPDX-License-Identifier: Apache-2.0
 *
 * pool: memory for one image at a time, taken piece by piece and given back all at once.
 *
 * The pool keeps one block. What does not fit spills into blocks of its own; the next reset makes
 * the block large enough for all of it, up to POOL_KEPT_MOST. So memory is asked of the system only
 * when an image comes that is larger than every one before, or huge; and a huge one leaves no trace
 * in the thread that met it. All pools of the process together stay within what
 * pool_limit_together() allows them, however many threads meet huge images at once.
 * pool_serve_jpeg() makes libjpeg take its per-image memory here, which is else allocated and freed
 * for every image. For one thread.
 */
#ifndef IOBENCH_BASE_POOL_H
#define IOBENCH_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jpeg_common_struct;
struct jpeg_memory_mgr;
struct pool_spill;

enum { POOL_KEPT_MOST = 64 << 20 };
enum { POOL_ALIGNMENT = 64 }; /* of every piece: a cache line, and what SIMD code likes */

struct pool {
    uint8_t *block;
    size_t block_bytes, block_used;
    size_t taken_bytes, limit_bytes;
    size_t charged_bytes; /* of what all pools may take together: beyond the first block */
    bool refused;         /* something since the last reset; the reason was kept then */
    struct pool_spill *spills;
    struct jpeg_memory_mgr *jpeg_original; /* the calls that pool_serve_jpeg() replaced */
};

/* bytes: of the first block; limit_bytes: never take more for one image. 0, or -ENOMEM. */
int pool_open(struct pool *pool, size_t bytes, size_t limit_bytes);
void pool_close(struct pool *pool); /* a zeroed pool is fine */

/* What all pools may take beyond their first blocks, from now on; 0, as at the start: anything. Any
 * thread. */
void pool_limit_together(uint64_t bytes);

/* Not zeroed. NULL with a reason when the limit or the machine's memory is passed. */
void *pool_take(struct pool *pool, size_t bytes);
void *pool_take_array(struct pool *pool, size_t count, size_t size); /* checks for overflow */

/* Everything taken is given back. */
void pool_reset(struct pool *pool);

/* After jpeg_create_decompress() or _compress(): image memory comes from the pool, which is reset
 * when libjpeg ends or aborts an image. Sets client_data. Close the pool after jpeg_destroy().
 * One libjpeg object a pool. 0, or -ENOMEM. */
int pool_serve_jpeg(struct pool *pool, struct jpeg_common_struct *jpeg);

#endif
