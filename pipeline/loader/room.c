/* SPDX-License-Identifier: Apache-2.0
 * What the loader's records occupy, memory and files, and how it becomes free. */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/fault_guard.h"
#include "pipeline/loader/loader_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A block is freed with its last record; small ones keep little memory from the others. */
struct coalesce loader_reads(const struct catalog *catalog, uint64_t memory_bytes,
                             uint64_t block_bytes, uint32_t loaders, uint32_t window)
{
    const uint64_t most_bytes = memory_bytes / loaders / BLOCKS_LEAST;

    return coalesce_rules(catalog, window, block_bytes < most_bytes ? block_bytes : most_bytes,
                          memory_bytes);
}

struct loader_memory loader_memory_needed(const struct catalog *catalog,
                                          const struct plan_traits *plan, uint32_t depth,
                                          uint64_t block_bytes, uint32_t loaders, uint32_t window)
{
    uint64_t mean = catalog->record_bytes_total / catalog->record_count + 1024;
    uint64_t largest = catalog->record_bytes_max + 2 * HEAP_ALIGNMENT;
    uint64_t reads = depth ? depth : LOADER_DEPTH_MOST;
    uint64_t block = block_bytes > largest ? block_bytes : largest;
    /* A plan of one slot holds nothing for long. */
    uint64_t slots = plan->slots > 1 ? plan->slots : 0;
    uint64_t slots_bytes = 2 * (slots * mean + slots * mean / 8);
    uint64_t window_bytes = coalesce_memory_bytes(catalog, window, block_bytes);
    uint64_t reads_bytes = 4 * reads * block;
    struct loader_memory memory = {
        .least_bytes = slots_bytes + 8 * largest * loaders,
        .wanted_bytes = slots_bytes + (reads_bytes > window_bytes ? reads_bytes : window_bytes),
    };
    uint64_t blocks_bytes = loaders * BLOCKS_LEAST * block;

    if (memory.wanted_bytes < blocks_bytes)
        memory.wanted_bytes = blocks_bytes;
    if (memory.wanted_bytes < memory.least_bytes)
        memory.wanted_bytes = memory.least_bytes;
    return memory;
}

static int create_arena(struct loader *loader, uint32_t index, uint32_t loader_number,
                        uint64_t bytes)
{
    struct numa_policy policy = {.mode = -1};

    if (loader->config.loaders > 1)
        policy = numa_prefer(&loader->numa, loader_number % loader->numa.count);
    struct heap *arena = heap_create(bytes, loader->config.alignment);
    numa_put_back(&policy);
    loader->arenas[index] = arena;
    if (!arena)
        return -ENOMEM;
    loader->regions[index] =
        (struct iovec){.iov_base = heap_base(arena), .iov_len = heap_bytes(arena)};
    return 0;
}

int loader_create_arenas(struct loader *loader)
{
    const uint32_t loaders = loader->config.loaders;
    const uint64_t share = loader->config.memory_bytes / loaders;
    const uint32_t each = (uint32_t)((share + ARENA_BYTES_MAX - 1) / ARENA_BYTES_MAX);
    int code = 0;

    loader->arena_count = each * loaders;
    loader->arenas = memory_array(loader->arena_count, sizeof *loader->arenas);
    loader->regions = memory_array(loader->arena_count, sizeof *loader->regions);
    if (!loader->arenas || !loader->regions)
        return -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < loader->arena_count; i++) {
        uint64_t left = share - i % each * ARENA_BYTES_MAX;
        code = create_arena(loader, i, i / each, left < ARENA_BYTES_MAX ? left : ARENA_BYTES_MAX);
    }
    return code;
}

/* Memory that the kernel may still write to stays for good, and known: it is not lost. */
static void leave_arenas(struct loader *loader)
{
    static struct left_behind {
        struct left_behind *next;
        struct heap **arenas;
    } * left;
    struct left_behind *more = memory_zeroed(sizeof *more);

    if (more)
        *more = (struct left_behind){.next = left, .arenas = loader->arenas};
    left = more ? more : left;
}

void loader_destroy_arenas(struct loader *loader)
{
    free(loader->regions);
    if (loader->memory_is_held) {
        leave_arenas(loader);
        return;
    }
    for (uint32_t i = 0; i < loader->arena_count && loader->arenas; i++)
        heap_destroy(loader->arenas[i]);
    free(loader->arenas);
}

/* The emptiest first, so that every loader has its share of the reads, and a slow one less. One
 * loader fills its arenas one after the other, which caches like. */
void *loader_memory_take(struct loader *loader, uint64_t bytes, uint32_t *region)
{
    uint32_t first = 0;

    for (uint32_t i = 1; i < loader->arena_count && loader->config.loaders > 1; i++)
        if (heap_used_bytes(loader->arenas[i]) < heap_used_bytes(loader->arenas[first]))
            first = i;
    for (uint32_t i = 0; i < loader->arena_count; i++) {
        *region = (first + i) % loader->arena_count;
        void *memory = heap_alloc(loader->arenas[*region], bytes);
        if (memory)
            return memory;
    }
    return NULL;
}

void loader_memory_give(struct loader *loader, void *memory)
{
    for (uint32_t i = 0; i < loader->arena_count; i++) {
        uint64_t offset = (uint64_t)((uintptr_t)memory - (uintptr_t)loader->regions[i].iov_base);
        if (offset < loader->regions[i].iov_len) {
            heap_free(loader->arenas[i], memory);
            return;
        }
    }
    assert(false && "memory that no arena gave");
}

void loader_note_release(struct loader *loader)
{
    loader->releases++;
    loader->starved = false;
}

void loader_block_release(struct loader *loader, struct block *block)
{
    assert(block->holders > 0);
    if (--block->holders > 0)
        return;
    reader_release(&loader->reader, &block->request);
    loader_note_release(loader);
    if (block->memory && !block->request.held)
        loader_memory_give(loader, block->memory);
    loader->free_blocks[loader->free_block_count++] = block;
}

void loader_fetch_free(struct loader *loader, struct fetch *fetch)
{
    if (fetch->copy)
        loader_memory_give(loader, fetch->copy);
    if (fetch->block)
        loader_block_release(loader, fetch->block);
    fetch->state = FETCH_FREE;
    loader->free_fetches[loader->free_fetch_count++] = fetch;
}

void loader_copy_out(struct loader *loader, struct fetch *fetch)
{
    uint32_t region;
    void *copy = loader_memory_take(loader, fetch->length, &region);

    if (!copy)
        return;
    fault_guard_begin();
    memcpy(copy, fetch->bytes, fetch->length);
    if (!fault_guard_end(fetch->bytes, fetch->length))
        fetch->code = -EFAULT; /* as fail_record() words it */
    fetch->bytes = fetch->copy = copy;
    loader_block_release(loader, fetch->block);
    fetch->block = NULL;
}

int loader_fail_stuck(const struct loader *loader)
{
    char needed[32], memory[32];

    bytes_text(loader_memory_needed(loader->config.catalog, &loader->config.plan->traits,
                                    loader->config.depth, loader->config.block_bytes,
                                    loader->config.loaders, loader->config.window)
                   .wanted_bytes,
               needed, sizeof needed);
    bytes_text(loader->config.memory_bytes, memory, sizeof memory);
    return fail(ENOMEM, "the shuffle holds more than the record memory of %s; give --memory %s",
                memory, needed);
}

static int fail_starved(const struct loader *loader)
{
    const char *name = loader->config.reader->plugin->name;
    char memory[32];

    if (loader->reader.held)
        return fail(ETIMEDOUT,
                    "%u reads that the storage never answered hold all files that the %s reader "
                    "may have open; see to the storage, or raise the limit (ulimit -n)",
                    loader->reader.held, name);
    if (loader->reader.traits.lends)
        return fail(EMFILE,
                    "records of the shuffle hold all files that the %s reader may have mapped, and "
                    "the record memory of %s has no room to copy them; give more --memory, a "
                    "smaller shuffle, or another reader",
                    name, bytes_text(loader->config.memory_bytes, memory, sizeof memory));
    return fail(EMFILE,
                "the %s reader can begin no read though none is in flight: no file may be opened; "
                "raise the limit (ulimit -n)",
                name);
}

/* Copy the record out of the map it is lent from, so that the map can be given back. */
static void return_loan(struct loader *loader, struct fetch *fetch)
{
    if (fetch && fetch->state == FETCH_READY && fetch->block && fetch->bytes &&
        fetch->block->request.result >= 0)
        loader_copy_out(loader, fetch);
}

/* All that is lent is with the plan's slots and with draws that wait for earlier ones. */
int loader_make_room(struct loader *loader)
{
    const uint64_t before = loader->releases;

    if (loader->reader.traits.lends) {
        for (uint64_t i = 0; i < loader->slot_count; i++)
            return_loan(loader, loader->slots[i]);
        for (uint64_t i = loader->draw_head; i < loader->draw_tail; i++)
            return_loan(loader, loader->draw_ring[i % loader->fetch_count]);
    }
    return loader->releases > before ? 0 : fail_starved(loader);
}
