/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/blocks.h"

#include "base/memory.h"
#include "base/heap.h"
#include "dataset/catalog.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- record memory ---- */

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

/* As arenas_acquire(); *region: where to look first, then where it is. Memory moved on by BEHIND
 * bytes is still in the first granule of its extent, which is how heap_free() knows it. */
static void *acquire_near(struct arenas *arenas, uint64_t source, uint64_t bytes, uint32_t *region)
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
    return acquire_near(arenas, source, bytes, region);
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

/* ---- blocks ---- */

int blocks_create(struct blocks *blocks, uint32_t count, struct arenas *arenas,
                  const struct reader_traits *traits)
{
    *blocks = (struct blocks){.arenas = arenas, .traits = traits, .count = count};
    blocks->all = memory_array(count, sizeof *blocks->all);
    blocks->free = memory_array(count, sizeof(void *));
    return blocks->all && blocks->free ? 0 : -ENOMEM;
}

void blocks_destroy(struct blocks *blocks)
{
    free(blocks->free);
    if (blocks->arenas && blocks->arenas->held) /* a late answer is written to its request, too */
        memory_keep(blocks->all);
    else
        free(blocks->all);
}

void blocks_reset(struct blocks *blocks)
{
    blocks->free_count = 0;
    for (uint32_t i = blocks->count; i-- > 0;) {
        blocks->all[i].holders = 0;
        blocks->free[blocks->free_count++] = &blocks->all[i];
    }
}

/* ---- release ---- */

static struct block *let_go(struct fetch *fetch)
{
    struct block *block = fetch->block;

    fetch->block = NULL;
    if (!block)
        return NULL;
    assert(block->holders > 0);
    return --block->holders == 0 ? block : NULL;
}

struct block *blocks_drop(struct blocks *blocks, struct fetch *fetch)
{
    if (fetch->copy)
        arenas_release(blocks->arenas, fetch->copy);
    return let_go(fetch);
}

struct block *blocks_copy_out(struct blocks *blocks, struct fetch *fetch)
{
    uint32_t region;
    void *copy = arenas_acquire(blocks->arenas, (uintptr_t)fetch->bytes, fetch->length, &region);

    if (!copy)
        return NULL;
    fault_guard_begin();
    memcpy(copy, fetch->bytes, fetch->length);
    if (!fault_guard_end(fetch->bytes, fetch->length))
        fetch->code = -EFAULT; /* the decoders' fail_record() words the reason */
    fetch->bytes = fetch->copy = copy;
    return let_go(fetch);
}

void blocks_free(struct blocks *blocks, struct block *block)
{
    assert(block->holders == 0);
    if (block->memory && !block->request.held)
        arenas_release(blocks->arenas, block->memory);
    blocks->free[blocks->free_count++] = block;
}

/* ---- submission ---- */

/* Read each record of the run into memory of its own, since it stays in a slot of the plan. The
 * list of parts and the bytes of the gaps, which nobody needs, are the block's memory. Returns
 * false if the run is read into one block: no record stays, the reader cannot, records share bytes,
 * or memory is short. */
static bool scatter(struct blocks *blocks, struct block *block, const struct coalesce_run *run,
                    const struct placed_fetch *fetches)
{
    struct read_request *request = &block->request;
    const uint64_t list_bytes = 2 * run->count * sizeof(struct iovec);
    uint64_t end = run->start, gap = 0;
    bool stays = false;

    if (run->count == 1 || !blocks->traits->scatters)
        return false;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct extent *place = &fetches[i].place;
        if (place->offset < end || place->bytes == 0)
            return false;
        if (place->offset - end > gap)
            gap = place->offset - end;
        end = place->offset + place->bytes;
        stays |= fetches[i].fetch->address == FETCH_UNDRAWN;
    }
    if (!stays)
        return false;
    block->memory = arenas_acquire(blocks->arenas, run->start, list_bytes + gap, &request->region);
    if (!block->memory)
        return false;
    request->parts = block->memory;
    end = run->start;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct extent *place = &fetches[i].place;
        uint32_t region = request->region;
        void *copy = acquire_near(blocks->arenas, place->offset, place->bytes, &region);
        if (!copy) {
            while (i-- > 0) {
                arenas_release(blocks->arenas, fetches[i].fetch->copy);
                fetches[i].fetch->copy = NULL;
            }
            arenas_release(blocks->arenas, block->memory);
            request->part_count = 0;
            return false;
        }
        fetches[i].fetch->copy = copy;
        if (place->offset > end)
            request->parts[request->part_count++] = (struct iovec){
                .iov_base = (char *)block->memory + list_bytes, .iov_len = place->offset - end};
        request->parts[request->part_count++] =
            (struct iovec){.iov_base = copy, .iov_len = place->bytes};
        end = place->offset + place->bytes;
    }
    assert(request->part_count <= 2 * run->count);
    return true;
}

struct block *blocks_prepare(struct blocks *blocks, const struct coalesce_run *run,
                             const struct placed_fetch *fetches)
{
    const bool reads = !blocks->traits->zero_copy && !blocks->traits->no_bytes;

    if (blocks->free_count == 0)
        return NULL;
    struct block *block = blocks->free[blocks->free_count - 1];
    block->memory = NULL;
    block->request.region = block->request.part_count = 0;
    if (reads && !scatter(blocks, block, run, fetches)) {
        block->memory = arenas_acquire(blocks->arenas, run->start, run->end - run->start,
                                       &block->request.region);
        if (!block->memory)
            return NULL;
    }
    blocks->free_count--;
    assert(block->holders == 0);
    block->fetch_count = run->count;
    block->fetches = NULL;
    /* Member by member: an initialiser is compiled to REP STOS, and reads after it wait for it. */
    block->request.offset = run->start;
    block->request.shard = run->shard;
    block->request.bytes = (uint32_t)(run->end - run->start);
    block->request.needed = (uint32_t)(run->records_end - run->start);
    block->request.buffer = block->memory;
    block->request.owner = block;
    block->request.held = false;
    return block;
}

void blocks_hold(struct block *block, const struct placed_fetch *fetches)
{
    for (uint32_t i = 0; i < block->fetch_count; i++) {
        struct fetch *fetch = fetches[i].fetch;
        assert(fetch->state == FETCH_PENDING && !fetch->block);
        fetch->block = block;
        fetch->offset = (uint32_t)(fetches[i].place.offset - block->request.offset);
        fetch->state = FETCH_READING;
        fetch->next_in_block = block->fetches;
        block->fetches = fetch;
    }
    block->holders = block->fetch_count;
}

void blocks_undo(struct blocks *blocks, struct block *block, const struct placed_fetch *fetches)
{
    for (uint32_t i = 0; i < block->fetch_count; i++) {
        if (fetches[i].fetch->copy)
            arenas_release(blocks->arenas, fetches[i].fetch->copy);
        fetches[i].fetch->copy = NULL;
    }
    blocks_free(blocks, block);
}

/* ---- completion ---- */

void blocks_finish(struct blocks *blocks, struct block *block, bool copies)
{
    const struct read_request *request = &block->request;

    assert(block->holders == block->fetch_count);
    for (struct fetch *fetch = block->fetches; fetch; fetch = fetch->next_in_block) {
        assert(fetch->state == FETCH_READING && fetch->block == block);
        fetch->state = FETCH_READY;
        fetch->code = request->result < 0 ? request->result : 0;
        if (fetch->code || !request->data)
            continue;
        if (fetch->copy) { /* scattered */
            fetch->bytes = fetch->copy;
            let_go(fetch);
            continue;
        }
        fetch->bytes = (const char *)request->data + fetch->offset;
        /* A record that stays in a slot of the plan must not keep the others' memory. */
        if (copies && fetch->address == FETCH_UNDRAWN && block->fetch_count > 1 && block->memory)
            blocks_copy_out(blocks, fetch);
    }
}

void blocks_fail(struct blocks *blocks, struct block *block)
{
    for (struct fetch *fetch = block->fetches; fetch; fetch = fetch->next_in_block) {
        if (fetch->copy && !block->request.held)
            arenas_release(blocks->arenas, fetch->copy);
        fetch->copy = NULL;
    }
}

void blocks_split(struct block *block, struct placed_fetch *fetches)
{
    const struct read_request *request = &block->request;

    assert(block->fetch_count <= COALESCE_RECORDS_MAX);
    for (struct fetch *fetch = block->fetches; fetch; fetch = fetch->next_in_block) {
        *fetches++ = (struct placed_fetch){.place = {.offset = request->offset + fetch->offset,
                                                     .bytes = fetch->length,
                                                     .shard = request->shard},
                                           .fetch = fetch};
        let_go(fetch);
    }
}
