/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

struct pool_spill {
    struct pool_spill *next;
    size_t bytes;
    uint8_t padding[POOL_ALIGNMENT - sizeof(struct pool_spill *) - sizeof(size_t)];
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

/* ---- what all pools take together ---- */

static struct counter together_bytes, together_limit;

void pool_limit_together(uint64_t bytes)
{
    counter_give(&together_limit, counter_get(&together_limit));
    counter_add(&together_limit, bytes);
}

static bool charge(struct pool *pool, size_t bytes)
{
    const uint64_t limit = counter_get(&together_limit);

    if (!counter_take(&together_bytes, bytes, limit ? limit : UINT64_MAX))
        return false;
    pool->charged_bytes += bytes;
    return true;
}

static void discharge(struct pool *pool, size_t bytes)
{
    counter_give(&together_bytes, bytes);
    pool->charged_bytes -= bytes;
}

/* ---- one pool ---- */

static void free_spills(struct pool *pool)
{
    while (pool->spills) {
        struct pool_spill *next = pool->spills->next;
        discharge(pool, pool->spills->bytes);
        free(pool->spills);
        pool->spills = next;
    }
}

void pool_close(struct pool *pool)
{
    free_spills(pool);
    discharge(pool, pool->charged_bytes);
    free(pool->block);
    free(pool->jpeg_original);
    *pool = (struct pool){0};
}

static void *take_spill(struct pool *pool, size_t bytes)
{
    char limit[32];

    if (!charge(pool, bytes)) {
        fail(ENOMEM,
             "the images that are decoded at once need more than %s, their share of the memory: "
             "use fewer --decode-threads, or refuse huge images by max-pixels of --decode",
             bytes_text(counter_get(&together_limit), limit, sizeof limit));
        return NULL;
    }
    struct pool_spill *spill = aligned_alloc(POOL_ALIGNMENT, bytes + sizeof *spill);
    if (!spill) {
        discharge(pool, bytes);
        fail(ENOMEM, "out of memory: %zu bytes for an image", bytes);
        return NULL;
    }
    spill->next = pool->spills;
    spill->bytes = bytes;
    pool->spills = spill;
    return spill + 1;
}

static void *take(struct pool *pool, size_t bytes)
{
    char limit[32];

    if (bytes > pool->limit_bytes - pool->taken_bytes) {
        fail(ENOMEM, "an image needs more than %s of memory",
             bytes_text(pool->limit_bytes, limit, sizeof limit));
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

void *pool_take(struct pool *pool, size_t bytes)
{
    void *piece = take(pool, bytes);

    pool->refused = pool->refused || !piece;
    return piece;
}

void *pool_take_array(struct pool *pool, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;
    return pool_take(pool, bytes);
}

/* A larger block in place of this one, when there is memory for it. */
static void grow(struct pool *pool, size_t bytes)
{
    const size_t more = bytes - pool->block_bytes;

    if (!charge(pool, more))
        return;
    uint8_t *block = aligned_alloc(POOL_ALIGNMENT, bytes);
    if (!block) {
        discharge(pool, more);
        return;
    }
    free(pool->block);
    pool->block = block;
    pool->block_bytes = bytes;
}

void pool_reset(struct pool *pool)
{
    /* A quarter more than needed, so that slowly growing images do not cost one block each. When
     * there is no memory for it the old block goes on, and spills again. */
    size_t wanted = bytes_align_up(pool->taken_bytes + pool->taken_bytes / 4, POOL_ALIGNMENT);

    if (wanted > POOL_KEPT_MOST)
        wanted = POOL_KEPT_MOST;
    if (pool->spills) {
        free_spills(pool);
        if (wanted > pool->block_bytes)
            grow(pool, wanted);
    }
    pool->block_used = pool->taken_bytes = 0;
    pool->refused = false;
}
