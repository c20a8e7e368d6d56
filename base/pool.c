/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include "base/bytes.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

struct pool_spill {
    struct pool_spill *next;
    uint8_t padding[POOL_ALIGNMENT - sizeof(struct pool_spill *)];
};

int pool_open(struct pool *pool, size_t bytes, size_t limit_bytes)
{
    bytes = bytes_align_up(bytes, POOL_ALIGNMENT);
    *pool = (struct pool){.limit_bytes = limit_bytes};
    pool->block = aligned_alloc(POOL_ALIGNMENT, bytes);
    if (!pool->block)
        return fail(ENOMEM, "out of memory: %zu bytes", bytes);
    pool->block_bytes = bytes;
    return 0;
}

static void free_spills(struct pool *pool)
{
    while (pool->spills) {
        struct pool_spill *next = pool->spills->next;
        free(pool->spills);
        pool->spills = next;
    }
}

void pool_close(struct pool *pool)
{
    free_spills(pool);
    free(pool->block);
    free(pool->jpeg_original);
    *pool = (struct pool){0};
}

static void *take_spill(struct pool *pool, size_t bytes)
{
    struct pool_spill *spill = aligned_alloc(POOL_ALIGNMENT, bytes + sizeof *spill);

    if (!spill) {
        fail(ENOMEM, "out of memory: %zu bytes for an image", bytes);
        return NULL;
    }
    spill->next = pool->spills;
    pool->spills = spill;
    return spill + 1;
}

void *pool_take(struct pool *pool, size_t bytes)
{
    if (bytes > pool->limit_bytes - pool->taken_bytes) {
        fail(ENOMEM, "an image needs more than %zu bytes of memory", pool->limit_bytes);
        return NULL;
    }
    bytes = bytes_align_up(bytes, POOL_ALIGNMENT);
    void *piece;
    if (bytes <= pool->block_bytes - pool->block_used) {
        piece = pool->block + pool->block_used;
        pool->block_used += bytes;
    } else {
        piece = take_spill(pool, bytes);
    }
    if (piece)
        pool->taken_bytes += bytes;
    if (pool->taken_bytes > pool->limit_bytes) /* by rounding up */
        pool->taken_bytes = pool->limit_bytes;
    return piece;
}

void *pool_take_array(struct pool *pool, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;
    return pool_take(pool, bytes);
}

void pool_reset(struct pool *pool)
{
    if (pool->spills) {
        /* A quarter more than needed, so that slowly growing images do not cost one block each.
         * When there is no memory for it the old block goes on, and spills again. */
        size_t wanted = bytes_align_up(pool->taken_bytes + pool->taken_bytes / 4, POOL_ALIGNMENT);
        uint8_t *block;
        free_spills(pool);
        block = aligned_alloc(POOL_ALIGNMENT, wanted);
        if (block) {
            free(pool->block);
            pool->block = block;
            pool->block_bytes = wanted;
        }
    }
    pool->block_used = pool->taken_bytes = 0;
}
