/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/arenas.h"

#include "base/heap.h"
#include "base/memory.h"
#include "dataset/catalog.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define REGION_BYTES_MAX (UINT64_C(1) << 30)
_Static_assert(CATALOG_RECORD_BYTES_MAX + 2 * 65536 <= REGION_BYTES_MAX, "every record fits");

int arenas_create(struct arenas *arenas, uint64_t bytes, uint64_t used_bytes, uint32_t granule,
                  uint32_t io_threads, const struct numa *numa)
{
    const uint64_t share = bytes / io_threads;
    const uint32_t each = (uint32_t)((share + REGION_BYTES_MAX - 1) / REGION_BYTES_MAX);
    int code = 0;

    assert(io_threads > 0);
    *arenas = (struct arenas){.count = each * io_threads, .balanced = io_threads > 1};
    arenas->heaps = memory_array(arenas->count, sizeof *arenas->heaps);
    arenas->regions = memory_array(arenas->count, sizeof *arenas->regions);
    if (!arenas->heaps || !arenas->regions)
        return -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < arenas->count; i++) {
        const uint64_t left = share - i % each * REGION_BYTES_MAX;
        struct numa_policy policy = {.mode = -1};
        if (io_threads > 1)
            policy = numa_prefer(numa, i / each % numa->count);
        struct heap *heap =
            heap_create(left < REGION_BYTES_MAX ? left : REGION_BYTES_MAX, used_bytes, granule);
        numa_put_back(&policy);
        arenas->heaps[i] = heap;
        if (heap)
            arenas->regions[i] =
                (struct iovec){.iov_base = heap_base(heap), .iov_len = heap_bytes(heap)};
        else
            code = -ENOMEM;
    }
    return code;
}

void arenas_destroy(struct arenas *arenas)
{
    free(arenas->regions);
    if (arenas->held) {
        memory_keep(arenas->heaps);
        return;
    }
    for (uint32_t i = 0; i < arenas->count && arenas->heaps; i++)
        heap_destroy(arenas->heaps[i]);
    free(arenas->heaps);
}

void arenas_reset(struct arenas *arenas)
{
    for (uint32_t i = 0; i < arenas->count; i++)
        heap_reset(arenas->heaps[i]);
}

static void *acquire(struct arenas *arenas, uint64_t bytes, uint32_t *region)
{
    const uint32_t first = *region;

    for (uint32_t i = 0; i < arenas->count; i++) {
        *region = (first + i) % arenas->count;
        void *memory = heap_alloc(arenas->heaps[*region], bytes);
        if (memory)
            return memory;
    }
    return NULL;
}

/* `rep movsb`, by which the kernel and memcpy() copy, takes 3 to 20 times as long on Zen 3 if the
 * target is 1 to 31 bytes behind the source, counted within a page (docs/results/io-engine.md). */
enum { PAGE = 4096, BEHIND = 32 };

static bool is_slow(const void *target, uint64_t source)
{
    const uint64_t behind = ((uintptr_t)target - source) % PAGE;

    return behind > 0 && behind < BEHIND;
}

/* Memory moved on by BEHIND bytes is still in the first granule of its extent, which is how
 * heap_free() knows it. */
void *arenas_acquire_near(struct arenas *arenas, uint64_t source, uint64_t bytes, uint32_t *region)
{
    void *memory = acquire(arenas, bytes, region);
    uint32_t other = *region;

    if (!memory || !is_slow(memory, source))
        return memory;
    char *larger = acquire(arenas, bytes + BEHIND, &other);
    if (!larger)
        return memory;
    arenas_release(arenas, memory);
    *region = other;
    return is_slow(larger, source) ? larger + BEHIND : larger;
}

/* With several I/O threads, try the emptiest heap first: each thread gets its share of the reads, a
 * slow one fewer. A single thread fills its heaps in order, for locality. */
void *arenas_acquire(struct arenas *arenas, uint64_t source, uint64_t bytes, uint32_t *region)
{
    *region = 0;
    for (uint32_t i = 1; i < arenas->count && arenas->balanced; i++)
        if (heap_used_bytes(arenas->heaps[i]) < heap_used_bytes(arenas->heaps[*region]))
            *region = i;
    return arenas_acquire_near(arenas, source, bytes, region);
}

void arenas_release(struct arenas *arenas, void *memory)
{
    for (uint32_t i = 0; i < arenas->count; i++) {
        uint64_t offset = (uint64_t)((uintptr_t)memory - (uintptr_t)arenas->regions[i].iov_base);
        if (offset < arenas->regions[i].iov_len) {
            heap_free(arenas->heaps[i], memory);
            return;
        }
    }
    assert(false && "memory outside every arena");
}

uint64_t arenas_used_bytes(const struct arenas *arenas)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < arenas->count; i++)
        bytes += heap_used_bytes(arenas->heaps[i]);
    return bytes;
}

uint64_t arenas_peak_bytes(const struct arenas *arenas)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < arenas->count; i++)
        bytes += heap_peak_bytes(arenas->heaps[i]);
    return bytes;
}
