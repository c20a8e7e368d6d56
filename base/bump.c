/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bump.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

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

/* ---- libjpeg ----
 *
 * Its memory manager on a bump allocator (libjpeg.txt, "Memory management"; jmemsys.h).
 * - libjpeg's own manager stays in place for JPOOL_PERMANENT of a compressor (tables that live as
 *   long as the object); its calls for JPOOL_IMAGE are replaced, and all of a decompressor, whose
 *   tables then are of one image.
 * - A virtual array is entirely in memory from its request on.
 * - Sample rows are padded to 64 bytes, since libjpeg-turbo's SIMD code works on whole vectors. */

/* The two control blocks are opaque to libjpeg: each memory manager has its own. */
struct jvirt_sarray_control {
    JSAMPARRAY rows;
    JDIMENSION count;
};

struct jvirt_barray_control {
    JBLOCKARRAY rows;
    JDIMENSION count;
};

static struct bump *bump_of(j_common_ptr jpeg)
{
    return jpeg->client_data;
}

static void *alloc(j_common_ptr jpeg, size_t count, size_t size)
{
    void *piece = bump_alloc_array(bump_of(jpeg), count, size);

    if (!piece)
        ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
    return piece;
}

static bool is_of_image(j_common_ptr jpeg, int pool_id)
{
    return pool_id == JPOOL_IMAGE || jpeg->is_decompressor;
}

static void *alloc_small(j_common_ptr jpeg, int pool_id, size_t bytes)
{
    if (!is_of_image(jpeg, pool_id))
        return bump_of(jpeg)->jpeg_original->alloc_small(jpeg, pool_id, bytes);
    return alloc(jpeg, 1, bytes);
}

static void *alloc_large(j_common_ptr jpeg, int pool_id, size_t bytes)
{
    if (!is_of_image(jpeg, pool_id))
        return bump_of(jpeg)->jpeg_original->alloc_large(jpeg, pool_id, bytes);
    return alloc(jpeg, 1, bytes);
}

static JSAMPARRAY alloc_samples(j_common_ptr jpeg, int pool_id, JDIMENSION width, JDIMENSION count)
{
    if (!is_of_image(jpeg, pool_id))
        return bump_of(jpeg)->jpeg_original->alloc_sarray(jpeg, pool_id, width, count);
    size_t stride = bytes_align_up((size_t)width * sizeof(JSAMPLE), BUMP_ALIGNMENT);
    JSAMPARRAY rows = alloc(jpeg, count, sizeof *rows);
    uint8_t *samples = alloc(jpeg, count, stride);
    for (JDIMENSION i = 0; i < count; i++)
        rows[i] = samples + i * stride;
    return rows;
}

static JBLOCKARRAY alloc_blocks(j_common_ptr jpeg, int pool_id, JDIMENSION width, JDIMENSION count)
{
    if (!is_of_image(jpeg, pool_id))
        return bump_of(jpeg)->jpeg_original->alloc_barray(jpeg, pool_id, width, count);
    JBLOCKARRAY rows = alloc(jpeg, count, sizeof *rows);
    JBLOCKROW blocks = alloc(jpeg, (size_t)width * count, sizeof *blocks);
    for (JDIMENSION i = 0; i < count; i++)
        rows[i] = blocks + (size_t)i * width;
    return rows;
}

static jvirt_sarray_ptr request_samples(j_common_ptr jpeg, int pool_id, boolean zero,
                                        JDIMENSION width, JDIMENSION count, JDIMENSION access)
{
    jvirt_sarray_ptr array = alloc(jpeg, 1, sizeof *array);

    (void)access;
    if (pool_id != JPOOL_IMAGE)
        ERREXIT1(jpeg, JERR_BAD_POOL_ID, pool_id);
    array->rows = alloc_samples(jpeg, pool_id, width, count);
    array->count = count;
    for (JDIMENSION i = 0; zero && i < count; i++)
        memset(array->rows[i], 0, width);
    return array;
}

static jvirt_barray_ptr request_blocks(j_common_ptr jpeg, int pool_id, boolean zero,
                                       JDIMENSION width, JDIMENSION count, JDIMENSION access)
{
    jvirt_barray_ptr array = alloc(jpeg, 1, sizeof *array);

    (void)access;
    if (pool_id != JPOOL_IMAGE)
        ERREXIT1(jpeg, JERR_BAD_POOL_ID, pool_id);
    array->rows = alloc_blocks(jpeg, pool_id, width, count);
    array->count = count;
    if (zero && count)
        memset(array->rows[0], 0, (size_t)width * count * sizeof(JBLOCK));
    return array;
}

static void realize(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void check_access(j_common_ptr jpeg, JDIMENSION start, JDIMENSION rows, JDIMENSION count)
{
    if (start > count || rows > count - start)
        ERREXIT(jpeg, JERR_BAD_VIRTUAL_ACCESS);
}

static JSAMPARRAY access_samples(j_common_ptr jpeg, jvirt_sarray_ptr array, JDIMENSION start,
                                 JDIMENSION rows, boolean writable)
{
    (void)writable;
    check_access(jpeg, start, rows, array->count);
    return array->rows + start;
}

static JBLOCKARRAY access_blocks(j_common_ptr jpeg, jvirt_barray_ptr array, JDIMENSION start,
                                 JDIMENSION rows, boolean writable)
{
    (void)writable;
    check_access(jpeg, start, rows, array->count);
    return array->rows + start;
}

static void free_pool(j_common_ptr jpeg, int pool_id)
{
    if (pool_id != JPOOL_IMAGE)
        bump_of(jpeg)->jpeg_original->free_pool(jpeg, pool_id);
    else
        bump_reset(bump_of(jpeg));
}

int bump_serve_jpeg(struct bump *bump, struct jpeg_common_struct *jpeg)
{
    struct jpeg_memory_mgr *manager = jpeg->mem;

    bump->jpeg_original = memory_zeroed(sizeof *manager);
    if (!bump->jpeg_original)
        return -ENOMEM;
    *bump->jpeg_original = *manager;
    jpeg->client_data = bump;
    manager->alloc_small = alloc_small;
    manager->alloc_large = alloc_large;
    manager->alloc_sarray = alloc_samples;
    manager->alloc_barray = alloc_blocks;
    manager->request_virt_sarray = request_samples;
    manager->request_virt_barray = request_blocks;
    manager->realize_virt_arrays = realize;
    manager->access_virt_sarray = access_samples;
    manager->access_virt_barray = access_blocks;
    manager->free_pool = free_pool;
    return 0;
}
