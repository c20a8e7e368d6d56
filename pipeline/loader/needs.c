/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/config.h"

#include "base/heap.h"
#include "pipeline/loader/blocks.h"
#include "pipeline/loader/fetch.h"

enum {
    WINDOWS_AHEAD = 4, /* windows of records that may be under way at once */
    FETCHES_LEAST = 8192,
    DEPTH_MOST = 256,  /* the queue depth that auto may reach */
    BLOCKS_LEAST = 16, /* full reads that each I/O thread's memory holds */
};

/* Memory is freed block by block, with a block's last record: with small blocks, few freed records
 * wait for others. */
struct coalesce loader_reads(const struct catalog *catalog, uint64_t memory_bytes,
                             const struct read_settings *read, uint64_t window)
{
    const uint64_t most_bytes = memory_bytes / read_io_threads(read) / BLOCKS_LEAST;

    return coalesce_rules(catalog, (uint32_t)window,
                          read->block_bytes < most_bytes ? read->block_bytes : most_bytes,
                          memory_bytes);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint32_t loader_depth_most(const struct read_settings *read)
{
    return read->iodepth ? (uint32_t)read->iodepth : DEPTH_MOST;
}

uint64_t loader_set_bytes(const struct catalog *catalog, uint32_t alignment)
{
    return 2 * (catalog_data_bytes(catalog) + catalog->record_count * 2 * alignment);
}

struct loader_memory loader_memory_needed(const struct catalog *catalog,
                                          const struct plan_traits *plan,
                                          const struct read_settings *read, uint64_t window)
{
    const uint32_t io_threads = read_io_threads(read);
    const uint64_t mean = catalog->record_bytes_total / catalog->record_count + 1024;
    const uint64_t largest = catalog->record_bytes_max + 2 * HEAP_ALIGNMENT;
    const uint64_t block = larger(read->block_bytes, largest);
    /* A plan of one slot holds nothing for long. */
    const uint64_t slots = plan->slots > 1 ? plan->slots : 0;
    const uint64_t slots_bytes = 2 * (slots * mean + slots * mean / 8);
    const uint64_t reads_bytes = smaller(4 * (uint64_t)loader_depth_most(read) * block,
                                         loader_set_bytes(catalog, HEAP_ALIGNMENT));
    const uint64_t window_bytes =
        coalesce_memory_bytes(catalog, (uint32_t)window, read->block_bytes);
    const uint64_t least_bytes = slots_bytes + 8 * largest * io_threads;
    const uint64_t wanted_bytes = slots_bytes + larger(reads_bytes, window_bytes);
    const uint64_t blocks_bytes = io_threads * BLOCKS_LEAST * block;

    return (struct loader_memory){
        .least_bytes = least_bytes,
        .wanted_bytes = larger(larger(wanted_bytes, blocks_bytes), least_bytes),
    };
}

uint64_t loader_fetches_most(const struct plan_traits *plan, uint32_t window)
{
    return plan->slots + larger(FETCHES_LEAST, (uint64_t)WINDOWS_AHEAD * window);
}

uint64_t loader_tables_bytes(const struct coalesce *reads, const struct plan_traits *plan,
                             uint64_t memory_bytes, uint32_t alignment)
{
    enum { POINTERS = 5, HEAP_TAGS_BYTES = 3 * sizeof(uint32_t) }; /* of free lists and queues */
    const uint64_t each = sizeof(struct fetch) + sizeof(struct block) + POINTERS * sizeof(void *);

    return loader_fetches_most(plan, reads->window) * each + plan->slots * sizeof(void *) +
           2 * reads->window * sizeof(struct placed_fetch) +
           memory_bytes / alignment * HEAP_TAGS_BYTES;
}
