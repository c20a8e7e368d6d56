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
    const struct job *job;
    const struct catalog *catalog;
    const struct plan_traits *plan;
    const char *shuffle;
    bool direct;
    uint64_t records_bytes, tables_bytes, batches_bytes, decode_bytes, hints_bytes;
    uint64_t held_bytes, available_bytes, trace_bytes;
};

uint64_t budget_available_bytes(const struct engine_config *config, uint64_t held_bytes,
                                struct headroom *headroom)
{
    const uint64_t limit_bytes = config->job->cold.memory_limit_bytes;
    const uint64_t held = held_bytes < limit_bytes ? held_bytes : limit_bytes;

    headroom_find(headroom, "/proc", "/sys");
    headroom->available_bytes /= config->ranks ? config->ranks->place.local_ranks : 1;
    if (limit_bytes && limit_bytes - held < headroom->available_bytes) {
        headroom->available_bytes = limit_bytes - held;
        headroom->cause = "--memory-limit";
    }
    return headroom->available_bytes;
}

/* The share that records get. Under --memory-limit a buffered read in flight is charged twice, for
 * its record memory and for its page cache, which the kernel cannot reclaim until it is filled: the
 * kernel kills the process instead. */
static uint64_t records_share_bytes(const struct budget *budget)
{
    const bool twice = budget->job->cold.memory_limit_bytes && !budget->direct;
    const uint64_t fixed_bytes = budget->batches_bytes + budget->decode_bytes + budget->hints_bytes;
    const uint64_t left_bytes =
        budget->available_bytes > fixed_bytes ? budget->available_bytes - fixed_bytes : 0;

    return left_bytes / (twice ? 4 : 2);
}

static uint64_t choose_records(const struct budget *budget, struct result *result)
{
    const struct read_settings *read = &budget->job->read;
    struct loader_memory need =
        loader_memory_needed(budget->catalog, budget->plan, read, budget->job->order.window);
    char least[32], given[32];

    if (read->memory_bytes) {
        if (read->memory_bytes >= need.least_bytes)
            return read->memory_bytes;
        bytes_text(need.least_bytes, least, sizeof least);
        bytes_text(read->memory_bytes, given, sizeof given);
        fail(ENOMEM,
             "shuffle %s holds %llu records, which needs at least %s; --memory allows %s: give "
             "more, "
             "or a smaller shuffle",
             budget->shuffle, (unsigned long long)budget->plan->slots, least, given);
        return 0;
    }
    uint64_t share = records_share_bytes(budget);
    if (need.least_bytes > share) {
        bytes_text(need.least_bytes, least, sizeof least);
        bytes_text(share, given, sizeof given);
        fail(ENOMEM,
             "shuffle %s holds %llu records, which needs at least %s; their share of the free "
             "memory is %s: use a smaller shuffle, or force it with --memory %llu",
             budget->shuffle, (unsigned long long)budget->plan->slots, least, given,
             (unsigned long long)need.least_bytes);
        return 0;
    }
    uint64_t bytes = need.wanted_bytes < share ? need.wanted_bytes : share;
    if (bytes < need.wanted_bytes)
        result_notice(result, "record memory is capped at a %s of the free memory",
                      share < budget->available_bytes / 2 ? "quarter" : "half");
    return bytes;
}

/* Warn if memory is too short for the requested window. */
static void note_window(const struct budget *budget, struct result *result)
{
    const struct read_settings *read = &budget->job->read;
    const struct coalesce wanted =
        loader_reads(budget->catalog, UINT64_MAX, read, budget->job->order.window);
    char memory[32], needed[32];

    if (!budget->job->order.window || result->reads.window == wanted.window)
        return;
    result_notice(
        result,
        "--window %u: record memory of %s holds windows of %u records; it takes --memory "
        "%s",
        wanted.window, bytes_text(result->memory_bytes, memory, sizeof memory),
        result->reads.window,
        bytes_text(coalesce_memory_bytes(budget->catalog, wanted.window, read->block_bytes), needed,
                   sizeof needed));
}

static uint64_t total_bytes(const struct budget *budget)
{
    return budget->records_bytes + budget->tables_bytes + budget->batches_bytes +
           budget->decode_bytes + budget->hints_bytes;
}

/* With a limit above the size of the data set nothing is evicted. */
static void note_limit(const struct budget *budget, struct result *result)
{
    const uint64_t limit_bytes = budget->job->cold.memory_limit_bytes;
    const uint64_t set_bytes = catalog_data_bytes(budget->catalog);
    char limit[32], set[32];

    if (!limit_bytes)
        return;
    bytes_text(limit_bytes, limit, sizeof limit);
    if (budget->direct)
        result_notice(result,
                      "--memory-limit %s has no effect on direct reads: they do not use the page "
                      "cache",
                      limit);
    else if (limit_bytes >= set_bytes &&
             limit_bytes - set_bytes >= total_bytes(budget) + budget->held_bytes)
        result_notice(result,
                      "--memory-limit %s has no effect: the data set of %s fits into it, and later "
                      "epochs can be read out of memory; give less than the set",
                      limit, bytes_text(set_bytes, set, sizeof set));
}

/* Above the limit the kernel would kill the process without a message. */
static int check_limit(const struct budget *budget)
{
    const bool direct = budget->direct;
    const uint64_t pages_bytes = direct ? 0 : budget->records_bytes; /* see records_share_bytes() */
    char limit[32], held[32], network[64] = "", batches[32], records[32];

    if (!budget->job->cold.memory_limit_bytes || budget->held_bytes + budget->batches_bytes +
                                                         budget->hints_bytes +
                                                         budget->records_bytes + pages_bytes <=
                                                     budget->job->cold.memory_limit_bytes / 4 * 3)
        return 0;
    if (budget->held_bytes)
        snprintf(network, sizeof network, "the network takes %s, ",
                 bytes_text(budget->held_bytes, held, sizeof held));
    return fail(ENOMEM,
                "--memory-limit %s: %sbatches take %s and records in flight %s%s, which leaves too "
                "little for the rest: allow more, or give less to --batch-size, --prefetch or "
                "--memory",
                bytes_text(budget->job->cold.memory_limit_bytes, limit, sizeof limit), network,
                bytes_text(budget->batches_bytes, batches, sizeof batches),
                bytes_text(budget->records_bytes, records, sizeof records),
                direct ? "" : ", and as much in the page cache");
}

static int check_total(const struct budget *budget, const char *cause)
{
    char total[32], available[32], records[32], tables[32], batches[32], decode[32], bytes[32],
        hints[64] = "";

    if (total_bytes(budget) <= budget->available_bytes)
        return 0;
    if (budget->hints_bytes)
        snprintf(hints, sizeof hints, ", entry points %s",
                 bytes_text(budget->hints_bytes, bytes, sizeof bytes));
    return fail(ENOMEM,
                "this needs %s of memory (records %s, their tables %s, batches %s, decoders %s%s), "
                "and %s allows %s: give less to --memory, --shuffle, --batch-size, --prefetch or "
                "--decode-threads",
                bytes_text(total_bytes(budget), total, sizeof total),
                bytes_text(budget->records_bytes, records, sizeof records),
                bytes_text(budget->tables_bytes, tables, sizeof tables),
                bytes_text(budget->batches_bytes, batches, sizeof batches),
                bytes_text(budget->decode_bytes, decode, sizeof decode), hints, cause,
                bytes_text(budget->available_bytes, available, sizeof available));
}

static int divide(struct budget *budget, const char *cause, struct result *result)
{
    const struct job *job = budget->job;
    int code = check_total(budget, cause); /* too much even without records? */

    if (code)
        return code;
    budget->records_bytes = result->memory_bytes = choose_records(budget, result);
    if (!budget->records_bytes)
        return -ENOMEM;
    result->reads =
        loader_reads(budget->catalog, budget->records_bytes, &job->read, job->order.window);
    note_window(budget, result);
    budget->tables_bytes =
        budget->trace_bytes +
        loader_tables_bytes(&result->reads, budget->plan, budget->records_bytes,
                            budget->direct ? HEAP_ALIGNMENT : LOADER_ALIGNMENT_BUFFERED);
    note_limit(budget, result);
    code = check_limit(budget);
    return code ? code : check_total(budget, cause);
}

int budget_make(const struct engine_config *config, const struct plan_traits *plan,
                uint32_t workers, uint64_t batches_bytes, uint64_t decoder_bytes,
                uint64_t held_bytes, struct result *result)
{
    struct headroom headroom;
    struct budget budget = {
        .job = config->job,
        .catalog = config->catalog,
        .plan = plan,
        .shuffle = config->plugins->shuffle.text,
        .direct = config->plugins->direct,
        .batches_bytes = batches_bytes,
        .decode_bytes = workers * (config->catalog->record_bytes_max + decoder_bytes),
        .hints_bytes = hinting_bytes(config->hinting, config->catalog->record_count),
        .held_bytes = held_bytes,
        .trace_bytes =
            config->job->output.trace ? (DECODERS_RING + workers) * sizeof(struct trace_ring) : 0};

    budget.available_bytes = budget_available_bytes(config, held_bytes, &headroom);
    result->hints.memory_bytes = budget.hints_bytes;
    int code = divide(&budget, headroom.cause, result);
    result->memory_needed_bytes = total_bytes(&budget);
    result->memory_available_bytes = budget.available_bytes;
    return code;
}
