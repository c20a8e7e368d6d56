/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/engine/budget.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/memory.h"
#include "pipeline/engine/decoders.h"
#include "pipeline/loader/loader.h"

#include <errno.h>
#include <stdio.h>

struct budget {
    uint64_t records, tables, batches, decode, hints; /* bytes */
    uint64_t available;
};

struct headroom budget_headroom(const struct engine_config *config, uint64_t held_bytes)
{
    const uint64_t limit_bytes = config->job->cold.memory_limit_bytes;
    const uint64_t held = held_bytes < limit_bytes ? held_bytes : limit_bytes;
    struct headroom headroom;

    headroom_find(&headroom, "/proc", "/sys");
    headroom.available_bytes /= config->ranks ? config->ranks->place.local_ranks : 1;
    if (limit_bytes && limit_bytes - held < headroom.available_bytes) {
        headroom.available_bytes = limit_bytes - held;
        headroom.cause = "--memory-limit";
    }
    return headroom;
}

static uint64_t total_bytes(const struct budget *budget)
{
    return budget->records + budget->tables + budget->batches + budget->decode + budget->hints;
}

static int check_total(const struct budget *budget, const char *cause)
{
    char total[32], available[32], records[32], tables[32], batches[32], decode[32], bytes[32],
        hints[64] = "";

    if (total_bytes(budget) <= budget->available)
        return 0;
    if (budget->hints)
        snprintf(hints, sizeof hints, ", entry points %s",
                 bytes_text(budget->hints, bytes, sizeof bytes));
    return fail(ENOMEM,
                "this needs %s of memory (records %s, their tables %s, batches %s, decoders %s%s), "
                "and %s allows %s: give less to --memory, --shuffle, --batch-size, --prefetch or "
                "--decode-threads",
                bytes_text(total_bytes(budget), total, sizeof total),
                bytes_text(budget->records, records, sizeof records),
                bytes_text(budget->tables, tables, sizeof tables),
                bytes_text(budget->batches, batches, sizeof batches),
                bytes_text(budget->decode, decode, sizeof decode), hints, cause,
                bytes_text(budget->available, available, sizeof available));
}

int budget_make(const struct engine_config *config, const struct plan_traits *plan,
                uint32_t workers, uint64_t batches_bytes, uint64_t decoder_bytes,
                uint64_t held_bytes, struct result *result)
{
    const struct job *job = config->job;
    const struct catalog *catalog = config->catalog;
    const struct headroom headroom = budget_headroom(config, held_bytes);
    const uint64_t limit_bytes = job->cold.memory_limit_bytes, asked = job->read.memory_bytes;
    const uint64_t set_bytes = catalog_data_bytes(catalog);
    const bool direct = config->plugins->direct;
    const char *shuffle = config->plugins->shuffle.text;
    const unsigned long long slots = plan->slots;
    struct budget budget = {.batches = batches_bytes,
                            .decode = workers * (catalog->record_bytes_max + decoder_bytes),
                            .hints = hinting_bytes(config->hinting, catalog->record_count),
                            .available = headroom.available_bytes};
    const uint64_t fixed = total_bytes(&budget);
    char least[32], given[32], limit[32], set[32], held[32], batches[32], records[32];

    result->hints.memory_bytes = budget.hints;
    result->memory_needed_bytes = fixed;
    result->memory_available_bytes = budget.available;
    int code = check_total(&budget, headroom.cause); /* too much even without records? */
    if (code)
        return code;
    /* The memory of the records: --memory, or what they want of their share. Under --memory-limit a
     * buffered read in flight is charged twice, for its record memory and for its page cache, which
     * the kernel cannot reclaim until it is filled: the kernel kills the process instead. */
    const struct loader_memory need =
        loader_memory_needed(catalog, plan, &job->read, job->order.window);
    const uint64_t share = (budget.available - fixed) / (limit_bytes && !direct ? 4 : 2);
    bytes_text(need.least_bytes, least, sizeof least);
    bytes_text(asked ? asked : share, given, sizeof given);
    if (asked && asked < need.least_bytes)
        return fail(ENOMEM,
                    "shuffle %s holds %llu records, which needs at least %s; --memory allows %s: "
                    "give more, or a smaller shuffle",
                    shuffle, slots, least, given);
    if (!asked && share < need.least_bytes)
        return fail(ENOMEM,
                    "shuffle %s holds %llu records, which needs at least %s; their share of the "
                    "free memory is %s: use a smaller shuffle, or force it with --memory %llu",
                    shuffle, slots, least, given, (unsigned long long)need.least_bytes);
    budget.records = asked ? asked : need.wanted_bytes < share ? need.wanted_bytes : share;
    if (!asked && share < need.wanted_bytes)
        result_notice(result, "record memory is capped at a %s of the free memory",
                      share < budget.available / 2 ? "quarter" : "half");
    const struct coalesce wanted = loader_reads(catalog, UINT64_MAX, &job->read, job->order.window);
    result->memory_bytes = budget.records;
    result->reads = loader_reads(catalog, budget.records, &job->read, job->order.window);
    if (job->order.window && result->reads.window != wanted.window)
        result_notice(
            result,
            "--window %u: record memory of %s holds windows of %u records; it takes "
            "--memory %s",
            wanted.window, bytes_text(budget.records, records, sizeof records),
            result->reads.window,
            bytes_text(coalesce_memory_bytes(catalog, wanted.window, job->read.block_bytes), given,
                       sizeof given));
    budget.tables = loader_tables_bytes(&result->reads, plan, budget.records,
                                        direct ? HEAP_ALIGNMENT : LOADER_ALIGNMENT_BUFFERED) +
                    (job->output.trace ? (DECODERS_RING + workers) * sizeof(struct trace_ring) : 0);
    result->memory_needed_bytes = total_bytes(&budget);
    bytes_text(limit_bytes, limit, sizeof limit);
    if (limit_bytes && direct)
        result_notice(result,
                      "--memory-limit %s has no effect on direct reads: they do not use the page "
                      "cache",
                      limit);
    else if (limit_bytes >= set_bytes + total_bytes(&budget) + held_bytes)
        result_notice(result,
                      "--memory-limit %s has no effect: the data set of %s fits into it, and later "
                      "epochs can be read out of memory; give less than the set",
                      limit, bytes_text(set_bytes, set, sizeof set));
    /* Above the limit the kernel would kill the process without a message. */
    if (limit_bytes &&
        held_bytes + budget.batches + budget.hints + budget.records * (direct ? 1 : 2) >
            limit_bytes / 4 * 3) {
        bytes_text(held_bytes, held, sizeof held);
        return fail(ENOMEM,
                    "--memory-limit %s: %s%s%sbatches take %s and records in flight %s%s, which "
                    "leaves too little for the rest: allow more, or give less to --batch-size, "
                    "--prefetch or --memory",
                    limit, held_bytes ? "the network takes " : "", held_bytes ? held : "",
                    held_bytes ? ", " : "", bytes_text(budget.batches, batches, sizeof batches),
                    bytes_text(budget.records, records, sizeof records),
                    direct ? "" : ", and as much in the page cache");
    }
    return check_total(&budget, headroom.cause);
}
