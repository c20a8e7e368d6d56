/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bump.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/fail.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct bump_spill {
    struct bump_spill *next;
    size_t bytes;
    uint8_t padding[BUMP_ALIGNMENT - sizeof(struct bump_spill *) - sizeof(size_t)];
};

int bump_open(struct bump *bump, size_t bytes, size_t limit_bytes)
{
    bytes = bytes_align_up(bytes, BUMP_ALIGNMENT);
    *bump = (struct bump){.limit_bytes = limit_bytes};
    bump->block = aligned_alloc(BUMP_ALIGNMENT, bytes);
    if (!bump->block)
        return fail(ENOMEM, "out of memory: %zu bytes", bytes);
    bump->block_bytes = bytes;
    return 0;
}

/* ---- the limit shared by all ---- */

static struct counter together_bytes, together_limit;

void bump_limit_together(uint64_t bytes)
{
    counter_sub(&together_limit, counter_get(&together_limit));
    counter_add(&together_limit, bytes);
}

static bool charge(struct bump *bump, size_t bytes)
{
    const uint64_t limit = counter_get(&together_limit);

    if (!counter_reserve(&together_bytes, bytes, limit ? limit : UINT64_MAX))
        return false;
    bump->charged_bytes += bytes;
    return true;
}

static void discharge(struct bump *bump, size_t bytes)
{
    assert(bytes <= bump->charged_bytes);
    counter_sub(&together_bytes, bytes);
    bump->charged_bytes -= bytes;
}

/* ---- one allocator ---- */

static void free_spills(struct bump *bump)
{
    while (bump->spills) {
        struct bump_spill *next = bump->spills->next;
        discharge(bump, bump->spills->bytes);
        free(bump->spills);
        bump->spills = next;
    }
}

void bump_close(struct bump *bump)
{
    free_spills(bump);
    discharge(bump, bump->charged_bytes);
    free(bump->block);
    free(bump->jpeg_original);
    *bump = (struct bump){0};
}

void *bump_alloc(struct bump *bump, size_t bytes)
{
    char limit[32];
    void *piece = NULL;

    assert(bump->used_bytes <= bump->limit_bytes && bump->block_used <= bump->block_bytes);
    if (bytes > bump->limit_bytes - bump->used_bytes) {
        fail(ENOMEM, "image needs more than %s of memory",
             bytes_text(bump->limit_bytes, limit, sizeof limit));
        bump->refused = true;
        return NULL;
    }
    bytes = bytes_align_up(bytes, BUMP_ALIGNMENT);
    if (bytes <= bump->block_bytes - bump->block_used) {
        piece = bump->block + bump->block_used;
        bump->block_used += bytes;
    } else if (!charge(bump, bytes)) {
        fail(ENOMEM,
             "images being decoded need more than %s, their share of memory: use fewer "
             "--decode-threads, or refuse huge images (--decode jpeg:max-pixels=N)",
             bytes_text(counter_get(&together_limit), limit, sizeof limit));
    } else {
        struct bump_spill *spill = aligned_alloc(BUMP_ALIGNMENT, bytes + sizeof *spill);
        if (spill) {
            spill->next = bump->spills;
            spill->bytes = bytes;
            bump->spills = spill;
            piece = spill + 1;
        } else {
            discharge(bump, bytes);
            fail(ENOMEM, "out of memory: %zu bytes for an image", bytes);
        }
    }
    bump->refused |= !piece;
    if (piece)
        bump->used_bytes += bytes;
    if (bump->used_bytes > bump->limit_bytes) /* due to rounding */
        bump->used_bytes = bump->limit_bytes;
    return piece;
}

void *bump_alloc_array(struct bump *bump, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;
    return bump_alloc(bump, bytes);
}

void bump_reset(struct bump *bump)
{
    /* A quarter more than needed, so slowly growing images do not cost one block each. If there is
     * no memory for it, keep the old block and spill again. */
    size_t wanted = bytes_align_up(bump->used_bytes + bump->used_bytes / 4, BUMP_ALIGNMENT);

    if (wanted > BUMP_KEPT_MOST)
        wanted = BUMP_KEPT_MOST;
    const bool grows = bump->spills && wanted > bump->block_bytes;
    free_spills(bump);
    if (grows && charge(bump, wanted - bump->block_bytes)) {
        uint8_t *block = aligned_alloc(BUMP_ALIGNMENT, wanted);
        if (block) {
            free(bump->block);
            bump->block = block;
            bump->block_bytes = wanted;
        } else {
            discharge(bump, wanted - bump->block_bytes);
        }
    }
    assert(!bump->spills);
    bump->block_used = bump->used_bytes = 0;
    bump->refused = false;
}
