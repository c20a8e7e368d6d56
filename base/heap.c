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

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

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

/* Take a chunk off the lists; what it has too much stays there. Returns NONE if none fits. */
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
