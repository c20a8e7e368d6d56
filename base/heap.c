/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants. Granules form chunks; a chunk is free or allocated.
 * - size[first granule] is the length of the chunk, with the ALLOCATED bit set unless it is free;
 *   size[last granule] holds the same number, so that both neighbours can be found.
 * - Two free chunks are never adjacent.
 * - A free chunk is in exactly one list, that of its size class; next/previous are valid only for
 *   the first granule of a free chunk. Bitmaps show which lists are not empty.
 * - A recent chunk is one that was freed, and is allocated as far as `size` says: all are of one
 *   length. So memory for reads of one size is reused at once, while it is in the CPU's cache, and
 *   neighbours are not merged only to be divided again.
 * Size classes are those of TLSF (Masmano et al. 2004): powers of two, each divided into 16.
 */
#include "base/heap.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <jpeglib.h>
#include <jerror.h>

enum { SECOND_BITS = 4, SECOND = 1 << SECOND_BITS, FIRST = 32, RECENT = 1024 };
#define NONE UINT32_MAX
#define ALLOCATED 0x80000000u

struct heap {
    uint8_t *base;
    uint64_t bytes;
    uint32_t granule_shift, granules;
    uint32_t *size, *next, *previous;
    uint64_t used, peak; /* granules */
    uint32_t first_map;
    uint32_t second_map[FIRST];
    uint32_t heads[FIRST][SECOND];
    uint32_t recent[RECENT], recent_count, recent_granules;
};

static void class_of(uint32_t granules, uint32_t *first, uint32_t *second)
{
    if (granules < SECOND) {
        *first = 0;
        *second = granules;
        return;
    }
    uint32_t log = 31u - (uint32_t)__builtin_clz(granules);
    *first = log - SECOND_BITS + 1;
    *second = granules >> (log - SECOND_BITS) & (SECOND - 1);
}

static void list_insert(struct heap *heap, uint32_t chunk, uint32_t granules)
{
    uint32_t first, second;

    assert(granules > 0 && chunk + granules <= heap->granules);
    class_of(granules, &first, &second);
    uint32_t head = heap->heads[first][second];
    heap->next[chunk] = head;
    heap->previous[chunk] = NONE;
    if (head != NONE)
        heap->previous[head] = chunk;
    heap->heads[first][second] = chunk;
    heap->first_map |= 1u << first;
    heap->second_map[first] |= 1u << second;
    heap->size[chunk] = heap->size[chunk + granules - 1] = granules;
}

static void list_remove(struct heap *heap, uint32_t chunk)
{
    uint32_t first, second, next = heap->next[chunk], previous = heap->previous[chunk];

    assert(!(heap->size[chunk] & ALLOCATED));
    class_of(heap->size[chunk], &first, &second);
    if (next != NONE)
        heap->previous[next] = previous;
    if (previous != NONE) {
        heap->next[previous] = next;
        return;
    }
    heap->heads[first][second] = next;
    if (next == NONE) {
        heap->second_map[first] &= ~(1u << second);
        if (!heap->second_map[first])
            heap->first_map &= ~(1u << first);
    }
}

static void *map_region(uint64_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return base == MAP_FAILED ? NULL : base;
}

struct heap *heap_create(uint64_t bytes, uint64_t used_bytes, uint32_t granule)
{
    assert(granule >= 64 && granule <= HEAP_ALIGNMENT && (granule & (granule - 1)) == 0);
    bytes = bytes_align_up(bytes ? bytes : 1, UINT64_C(2) << 20);
    uint64_t granules = bytes / granule;
    if (granules >= ALLOCATED) {
        fail(EINVAL, "record memory of %llu bytes is too large", (unsigned long long)bytes);
        return NULL;
    }
    struct heap *heap = memory_zeroed(sizeof *heap);
    if (!heap)
        return NULL;
    heap->bytes = bytes;
    heap->granules = (uint32_t)granules;
    heap->granule_shift = (uint32_t)__builtin_ctz(granule);
    heap->base = map_region(bytes);
    heap->size = map_region(granules * 3 * sizeof *heap->size);
    if (!heap->base || !heap->size) {
        heap_destroy(heap);
        fail(ENOMEM, "out of memory for %llu bytes of record memory; give a smaller --memory",
             (unsigned long long)bytes);
        return NULL;
    }
    madvise(heap->base, bytes, MADV_HUGEPAGE);
    for (uint64_t offset = 0; offset < bytes && offset < used_bytes; offset += 4096)
        heap->base[offset] = 0;
    heap->next = heap->size + granules;
    heap->previous = heap->next + granules;
    heap_reset(heap);
    return heap;
}

void heap_reset(struct heap *heap)
{
    for (int first = 0; first < FIRST; first++) {
        heap->second_map[first] = 0;
        for (int second = 0; second < SECOND; second++)
            heap->heads[first][second] = NONE;
    }
    heap->first_map = heap->recent_count = 0;
    heap->used = heap->peak = 0;
    list_insert(heap, 0, heap->granules);
}

void heap_destroy(struct heap *heap)
{
    if (!heap)
        return;
    if (heap->base)
        munmap(heap->base, heap->bytes);
    if (heap->size)
        munmap(heap->size, (size_t)heap->granules * 3 * sizeof *heap->size);
    free(heap);
}

/* Return the chunk to the lists, merged with free neighbours. */
static void give_back(struct heap *heap, uint32_t chunk)
{
    uint32_t granules = heap->size[chunk] & ~ALLOCATED, after = chunk + granules;

    if (after < heap->granules && !(heap->size[after] & ALLOCATED)) {
        list_remove(heap, after);
        granules += heap->size[after];
    }
    if (chunk > 0 && !(heap->size[chunk - 1] & ALLOCATED)) {
        uint32_t before = heap->size[chunk - 1];
        chunk -= before;
        list_remove(heap, chunk);
        granules += before;
    }
    list_insert(heap, chunk, granules);
}

static void give_back_recent(struct heap *heap)
{
    while (heap->recent_count > 0)
        give_back(heap, heap->recent[--heap->recent_count]);
}

/* Take a chunk off the lists; the part that is not needed stays there. Returns NONE if none
 * fits. */
static uint32_t take_chunk(struct heap *heap, uint32_t granules)
{
    uint32_t first, second, chunk, rounded = granules;

    /* Round the size up to a class boundary: then every chunk of that class and above is large
     * enough, and the first one found will do. */
    if (granules >= SECOND)
        rounded += (1u << (31u - (uint32_t)__builtin_clz(granules) - SECOND_BITS)) - 1;
    class_of(rounded, &first, &second);
    uint32_t map = first < FIRST ? heap->second_map[first] & ~0u << second : 0;
    const uint32_t firsts = first + 1 < FIRST ? heap->first_map & ~0u << (first + 1) : 0;
    if (!map && firsts) {
        first = (uint32_t)__builtin_ctz(firsts);
        map = heap->second_map[first];
    }
    if (map) {
        chunk = heap->heads[first][__builtin_ctz(map)];
    } else { /* chunks of the size's own class may be smaller: look at each */
        class_of(granules, &first, &second);
        for (chunk = heap->heads[first][second]; chunk != NONE && heap->size[chunk] < granules;)
            chunk = heap->next[chunk];
    }
    if (chunk == NONE)
        return NONE;
    const uint32_t whole = heap->size[chunk];
    assert(!(whole & ALLOCATED) && whole >= granules);
    list_remove(heap, chunk);
    if (whole > granules)
        list_insert(heap, chunk + granules, whole - granules);
    heap->size[chunk] = heap->size[chunk + granules - 1] = granules | ALLOCATED;
    return chunk;
}

void *heap_alloc(struct heap *heap, uint64_t bytes)
{
    uint64_t wanted = (bytes + (UINT64_C(1) << heap->granule_shift) - 1) >> heap->granule_shift;
    uint32_t chunk;

    if (wanted == 0)
        wanted = 1;
    if (wanted > heap->granules)
        return NULL;
    const uint32_t granules = (uint32_t)wanted;
    if (heap->recent_count > 0 && heap->recent_granules == granules) {
        chunk = heap->recent[--heap->recent_count];
    } else {
        chunk = take_chunk(heap, granules);
        if (chunk == NONE && heap->recent_count > 0) {
            give_back_recent(heap);
            chunk = take_chunk(heap, granules);
        }
    }
    if (chunk == NONE)
        return NULL;
    heap->used += granules;
    if (heap->used > heap->peak)
        heap->peak = heap->used;
    return heap->base + ((uint64_t)chunk << heap->granule_shift);
}

void heap_free(struct heap *heap, void *extent)
{
    uint32_t chunk = (uint32_t)((uint64_t)((uint8_t *)extent - heap->base) >> heap->granule_shift);

    assert(chunk < heap->granules && (heap->size[chunk] & ALLOCATED));
    const uint32_t granules = heap->size[chunk] & ~ALLOCATED;
    assert(granules <= heap->used);
    heap->used -= granules;
    if (heap->recent_granules != granules) {
        give_back_recent(heap);
        heap->recent_granules = granules;
    }
    if (heap->recent_count < RECENT)
        heap->recent[heap->recent_count++] = chunk;
    else
        give_back(heap, chunk);
}

void *heap_base(const struct heap *heap)
{
    return heap->base;
}

uint64_t heap_bytes(const struct heap *heap)
{
    return heap->bytes;
}

uint64_t heap_used_bytes(const struct heap *heap)
{
    return heap->used << heap->granule_shift;
}

uint64_t heap_peak_bytes(const struct heap *heap)
{
    return heap->peak << heap->granule_shift;
}

/* ---- bump ---- */

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
