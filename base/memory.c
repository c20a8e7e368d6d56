/* SPDX-License-Identifier: Apache-2.0
 *
 * The arena's invariants. Granules are cut into chunks; a chunk is free or taken.
 * - size[first granule] = length of the chunk, with TAKEN set when it is taken;
 *   size[last granule] holds the same number, so that both neighbours can be found.
 * - Two free chunks are never neighbours.
 * - A free chunk is in exactly one list, that of its size class; next/previous are valid for the
 *   first granule of free chunks only. Bit maps say which lists are not empty.
 * Size classes are those of TLSF (Masmano et al. 2004): a power of two, cut into 16.
 */
#include "base/file.h"
#include "base/memory.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/headroom.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *memory_zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    if (!memory)
        fail(ENOMEM, "out of memory: %zu bytes", bytes);
    return memory;
}

void *memory_array(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);

    if (!memory)
        fail(ENOMEM, "out of memory: %zu times %zu bytes", count, size);
    return memory;
}

void *memory_pages(size_t bytes)
{
    void *memory = NULL;
    int code = posix_memalign(&memory, ARENA_ALIGNMENT, bytes ? bytes : 1);

    if (code) {
        fail(code, "out of memory: %zu bytes", bytes);
        return NULL;
    }
    return memory;
}

int memory_room(void *rows, uint64_t count, size_t size, const char *what)
{
    void *moved;

    if (count & (count - 1))
        return 0;
    memcpy(&moved, rows, sizeof moved);
    moved = count <= SIZE_MAX / 2 ? reallocarray(moved, count ? 2 * count : 1, size) : NULL;
    if (!moved)
        return fail(ENOMEM, "out of memory for more than %llu %s", (unsigned long long)count, what);
    memcpy(rows, &moved, sizeof moved);
    return 0;
}

enum { SECOND_BITS = 4, SECOND = 1 << SECOND_BITS, FIRST = 32 };
#define NONE UINT32_MAX
#define TAKEN 0x80000000u

struct arena {
    uint8_t *base;
    uint64_t bytes;
    uint32_t granule_shift, granules;
    uint32_t *size, *next, *previous;
    uint64_t used, peak; /* granules */
    uint32_t first_map;
    uint32_t second_map[FIRST];
    uint32_t heads[FIRST][SECOND];
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

static void list_insert(struct arena *arena, uint32_t chunk, uint32_t granules)
{
    uint32_t first, second;

    class_of(granules, &first, &second);
    uint32_t head = arena->heads[first][second];
    arena->next[chunk] = head;
    arena->previous[chunk] = NONE;
    if (head != NONE)
        arena->previous[head] = chunk;
    arena->heads[first][second] = chunk;
    arena->first_map |= 1u << first;
    arena->second_map[first] |= 1u << second;
    arena->size[chunk] = arena->size[chunk + granules - 1] = granules;
}

static void list_remove(struct arena *arena, uint32_t chunk)
{
    uint32_t first, second, next = arena->next[chunk], previous = arena->previous[chunk];

    class_of(arena->size[chunk], &first, &second);
    if (next != NONE)
        arena->previous[next] = previous;
    if (previous != NONE) {
        arena->next[previous] = next;
        return;
    }
    arena->heads[first][second] = next;
    if (next == NONE) {
        arena->second_map[first] &= ~(1u << second);
        if (!arena->second_map[first])
            arena->first_map &= ~(1u << first);
    }
}

/* Any chunk in a list at or above the class of the size rounded up to a class border is large
 * enough; so the first one found is taken. */
static uint32_t find_fit(const struct arena *arena, uint32_t granules)
{
    uint32_t first, second, rounded = granules;

    if (granules >= SECOND) {
        uint32_t log = 31u - (uint32_t)__builtin_clz(granules);
        rounded += (1u << (log - SECOND_BITS)) - 1;
    }
    class_of(rounded, &first, &second);
    uint32_t map = first < FIRST ? arena->second_map[first] & ~0u << second : 0;
    if (!map) {
        uint32_t firsts = first + 1 < FIRST ? arena->first_map & ~0u << (first + 1) : 0;
        if (!firsts)
            return NONE;
        first = (uint32_t)__builtin_ctz(firsts);
        map = arena->second_map[first];
    }
    return arena->heads[first][__builtin_ctz(map)];
}

static void *map_region(uint64_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return base == MAP_FAILED ? NULL : base;
}

struct arena *arena_create(uint64_t bytes, uint32_t granule)
{
    assert(granule >= 64 && granule <= ARENA_ALIGNMENT && (granule & (granule - 1)) == 0);
    bytes = bytes_align_up(bytes ? bytes : 1, UINT64_C(2) << 20);
    uint64_t granules = bytes / granule;
    if (granules >= TAKEN) {
        fail(EINVAL, "a record memory of %llu bytes is too large", (unsigned long long)bytes);
        return NULL;
    }
    struct arena *arena = memory_zeroed(sizeof *arena);
    if (!arena)
        return NULL;
    arena->bytes = bytes;
    arena->granules = (uint32_t)granules;
    arena->granule_shift = (uint32_t)__builtin_ctz(granule);
    arena->base = map_region(bytes);
    arena->size = map_region(granules * 3 * sizeof *arena->size);
    if (!arena->base || !arena->size) {
        arena_destroy(arena);
        fail(ENOMEM, "out of memory for %llu bytes of record memory; give a smaller --memory",
             (unsigned long long)bytes);
        return NULL;
    }
    madvise(arena->base, bytes, MADV_HUGEPAGE);
    for (uint64_t offset = 0; offset < bytes; offset += 4096)
        arena->base[offset] = 0;
    arena->next = arena->size + granules;
    arena->previous = arena->next + granules;
    arena_reset(arena);
    return arena;
}

void arena_reset(struct arena *arena)
{
    for (int first = 0; first < FIRST; first++) {
        arena->second_map[first] = 0;
        for (int second = 0; second < SECOND; second++)
            arena->heads[first][second] = NONE;
    }
    arena->first_map = 0;
    arena->used = arena->peak = 0;
    list_insert(arena, 0, arena->granules);
}

void arena_destroy(struct arena *arena)
{
    if (!arena)
        return;
    if (arena->base)
        munmap(arena->base, arena->bytes);
    if (arena->size)
        munmap(arena->size, (size_t)arena->granules * 3 * sizeof *arena->size);
    free(arena);
}

static void mark_taken(struct arena *arena, uint32_t chunk, uint32_t granules)
{
    arena->size[chunk] = arena->size[chunk + granules - 1] = granules | TAKEN;
}

void *arena_take(struct arena *arena, uint64_t bytes)
{
    uint64_t wanted = (bytes + (UINT64_C(1) << arena->granule_shift) - 1) >> arena->granule_shift;

    if (wanted == 0)
        wanted = 1;
    if (wanted > arena->granules)
        return NULL;
    uint32_t granules = (uint32_t)wanted, chunk = find_fit(arena, granules);
    if (chunk == NONE)
        return NULL;
    uint32_t whole = arena->size[chunk];
    assert(!(whole & TAKEN) && whole >= granules);
    list_remove(arena, chunk);
    if (whole > granules)
        list_insert(arena, chunk + granules, whole - granules);
    mark_taken(arena, chunk, granules);
    arena->used += granules;
    if (arena->used > arena->peak)
        arena->peak = arena->used;
    return arena->base + ((uint64_t)chunk << arena->granule_shift);
}

void arena_give(struct arena *arena, void *extent)
{
    uint32_t chunk =
        (uint32_t)((uint64_t)((uint8_t *)extent - arena->base) >> arena->granule_shift);

    assert(chunk < arena->granules && (arena->size[chunk] & TAKEN));
    uint32_t granules = arena->size[chunk] & ~TAKEN, after = chunk + granules;
    arena->used -= granules;
    if (after < arena->granules && !(arena->size[after] & TAKEN)) {
        list_remove(arena, after);
        granules += arena->size[after];
    }
    if (chunk > 0 && !(arena->size[chunk - 1] & TAKEN)) {
        uint32_t before = arena->size[chunk - 1];
        chunk -= before;
        list_remove(arena, chunk);
        granules += before;
    }
    list_insert(arena, chunk, granules);
}

void *arena_base(const struct arena *arena)
{
    return arena->base;
}

uint64_t arena_bytes(const struct arena *arena)
{
    return arena->bytes;
}

uint64_t arena_used_bytes(const struct arena *arena)
{
    return arena->used << arena->granule_shift;
}

uint64_t arena_peak_bytes(const struct arena *arena)
{
    return arena->peak << arena->granule_shift;
}

uint64_t memory_resident_bytes(void)
{
    unsigned long long resident = 0;
    FILE *file = file_stream_kernel("/proc/self/statm");

    if (file && fscanf(file, "%*u %llu", &resident) != 1)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t memory_available_bytes(void)
{
    struct headroom headroom;

    headroom_find(&headroom, "/proc", "/sys");
    return headroom.available_bytes;
}
