/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/result.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct result_rank rank_here(const struct ranks *ranks)
{
    const struct ranks_place *place = &ranks->place;
    struct result_rank rank = {
        .rank = place->rank, .node = place->node, .leads = place->local_rank == 0};

    memcpy(rank.host, place->host, sizeof rank.host);
    return rank;
}

/* Check what another rank sent: node in range, texts ended. It may run another build. */
static bool is_bool(const bool *value)
{
    return *(const unsigned char *)value <= 1;
}

static int check_rank(const struct ranks *ranks, const struct result_rank *rank, bool good)
{
    if (good && is_bool(&rank->leads) && rank->node < ranks->place.nodes &&
        rank->rank < ranks->place.ranks && memchr(rank->host, 0, sizeof rank->host))
        return 0;
    return fail(EPROTO, "a rank sent an impossible report: use the same build on all nodes");
}

static bool sound_epoch(const struct result_epoch *epoch)
{
    return epoch->limit >= RESULT_LIMIT_STORAGE && epoch->limit <= RESULT_LIMIT_HARNESS &&
           is_bool(&epoch->device.known) && is_bool(&epoch->device.of_node) &&
           memchr(epoch->device.method, 0, sizeof epoch->device.method) &&
           memchr(epoch->device.reason, 0, sizeof epoch->device.reason);
}

/* ---- caches ---- */

struct cold_report {
    struct result_rank rank;
    struct result_cold cold;
};

/* whose: a node, or a rank of one. */
static void add_cold(struct result_cold *sum, const struct result_cold *cold, const char *whose)
{
    const struct result_cold before = *sum;

    if (result_cold_state(cold) > result_cold_state(&before)) {
        *sum = *cold;
        snprintf(sum->reason, sizeof sum->reason, "%.64s%s%.300s", whose,
                 cold->reason[0] ? ": " : "", cold->reason);
    }
    sum->resident_bytes = before.resident_bytes + cold->resident_bytes;
    sum->read_bytes = before.read_bytes + cold->read_bytes;
    sum->explained_bytes = before.explained_bytes + cold->explained_bytes;
    sum->total_bytes = cold->total_bytes; /* the same for all */
    sum->dropped = before.dropped && cold->dropped;
    sum->drop_ns = cold->drop_ns > before.drop_ns ? cold->drop_ns : before.drop_ns;
    sum->residue_percent = sum->read_bytes
                               ? 100 * (double)sum->resident_bytes / (double)sum->read_bytes
                               : fmax(before.residue_percent, cold->residue_percent);
    sum->metadata_dropped = before.metadata_dropped && cold->metadata_dropped;
}

static bool sound_look(const struct server_look *look)
{
    return is_bool(&look->resident_known) && is_bool(&look->disk_known) &&
           memchr(look->reason, 0, sizeof look->reason);
}

int gather_cold(struct ranks *ranks, const struct result_cold *mine, struct result_run *run)
{
    const uint32_t count = ranks->place.ranks;
    struct cold_report report = {.rank = rank_here(ranks), .cold = *mine};

    run->cold = *mine;
    run->cold.state = result_cold_state(mine);
    if (count == 1)
        return 0;
    struct cold_report *reports = memory_array(count, sizeof *reports);
    run->nodes = memory_array(ranks->place.nodes, sizeof *run->nodes);
    int code = reports && run->nodes ? 0 : -ENOMEM;
    if (code == 0)
        code = ranks_gather(ranks, &report, sizeof report, reports);
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        const struct result_cold *cold = &reports[i].cold;
        const struct server_result *server = &cold->server;
        code = check_rank(ranks, &reports[i].rank,
                          is_bool(&cold->dropped) && is_bool(&cold->metadata_dropped) &&
                              is_bool(&cold->bypassed) && cold->pages >= RESIDENCY_COLD &&
                              cold->pages <= RESIDENCY_UNVERIFIED &&
                              memchr(cold->method, 0, sizeof cold->method) &&
                              memchr(cold->reason, 0, sizeof cold->reason) &&
                              server->state >= SERVER_NONE && server->state <= SERVER_WARM &&
                              is_bool(&server->drop.made) && is_bool(&server->check.made) &&
                              is_bool(&server->looked) && is_bool(&server->looked_before) &&
                              is_bool(&server->disk_known) && sound_look(&server->before) &&
                              sound_look(&server->start) &&
                              memchr(server->drop.output, 0, sizeof server->drop.output) &&
                              memchr(server->check.output, 0, sizeof server->check.output) &&
                              memchr(server->reason, 0, sizeof server->reason));
    }
    if (code) {
        free(reports);
        return code;
    }
    /* Rank 0 asked the server; the server's answer holds for all nodes. A node's first rank dropped
     * its caches; each rank looked at what it reads. */
    run->node_count = ranks->place.nodes;
    for (uint32_t i = 0; i < count; i++) {
        assert(reports[i].rank.node < run->node_count);
        struct result_node *node = &run->nodes[reports[i].rank.node];
        struct result_cold cold = reports[i].cold;
        char whose[32];
        cold.server = reports[0].cold.server;
        snprintf(whose, sizeof whose, "rank %u", i);
        if (node->ranks++) {
            cold.metadata_dropped = node->cold.metadata_dropped;
            cold.dropped = node->cold.dropped;
            add_cold(&node->cold, &cold, whose);
            continue;
        }
        memcpy(node->host, reports[i].rank.host, sizeof node->host);
        node->cold = cold;
    }
    run->cold = run->nodes[reports[0].rank.node].cold;
    for (uint32_t i = 0; i < run->node_count; i++) {
        if (i != reports[0].rank.node)
            add_cold(&run->cold, &run->nodes[i].cold, run->nodes[i].host);
        run->nodes[i].cold.state = result_cold_state(&run->nodes[i].cold);
    }
    run->cold.state = result_cold_state(&run->cold);
    free(reports);
    return code;
}

/* ---- figures ---- */

/* A run as sent to other ranks: its epochs follow, and its pointers are meaningless. */
struct run_report {
    struct result_rank rank;
    struct result_run run;
    struct result_epoch epochs[];
};

/* Ranks begin at slightly different times, so it is longer than any rank's own, and clocks of nodes
 * cannot be compared; but all ranks learn at about the same time that all have ended. To the first
 * one that is longest after its start; what it took to learn it is what the last one waited. */
uint64_t gather_epoch_ns(const struct result_epoch *first, size_t stride, uint32_t count)
{
    uint64_t longest_ns = 0, learning_ns = UINT64_MAX;

    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct result_epoch *epoch = figures_of_rank(first, stride, i);
        const uint64_t own_ns = epoch->wall_ns;
        const uint64_t met_ns = epoch->met_ns > own_ns ? epoch->met_ns : own_ns;
        longest_ns = met_ns > longest_ns ? met_ns : longest_ns;
        learning_ns = met_ns - own_ns < learning_ns ? met_ns - own_ns : learning_ns;
    }
    return longest_ns - learning_ns;
}

/* Merge one epoch of `count` ranks: by the rows of its figures, but for its length, its limit,
 * which is that of the slowest rank, and the bytes that left storage, which a node counts once. */
static void merge_epochs(const struct result_epoch *first, size_t stride,
                         const struct result_rank *ranks, uint32_t count,
                         struct result_epoch *merged)
{
    const struct result_epoch *slowest = first;
    struct result_bytes *sum = &merged->device;

    figures_merge_ranks(first, stride, count, merged);
    merged->wall_ns = gather_epoch_ns(first, stride, count);
    for (uint32_t i = 1; i < count; i++) {
        const struct result_epoch *epoch = figures_of_rank(first, stride, i);
        const struct result_bytes *device = &epoch->device;
        if (epoch->wall_ns > slowest->wall_ns)
            slowest = epoch;
        if (!device->known) {
            *sum = *device;
            continue;
        }
        if (sum->known && (ranks[i].leads || !device->of_node))
            sum->bytes += device->bytes;
        sum->of_node |= device->of_node;
        sum->beneath_known = sum->beneath_known && device->beneath_known;
        if (ranks[i].leads)
            sum->beneath_bytes += device->beneath_bytes;
    }
    merged->limit = slowest->limit;
}

static const struct run_report *report_at(const void *reports, size_t bytes, uint32_t rank)
{
    return (const struct run_report *)((const char *)reports + bytes * rank);
}

int gather_run(struct ranks *ranks, uint64_t epochs_max, struct result_run *run)
{
    const uint32_t count = ranks->place.ranks;
    const size_t bytes = sizeof(struct run_report) + epochs_max * sizeof(struct result_epoch);

    if (count == 1)
        return 0;
    struct run_report *mine = memory_zeroed(bytes);
    void *reports = memory_array(count, bytes);
    run->ranks = memory_array(count, sizeof *run->ranks);
    int code = mine && reports && run->ranks ? 0 : -ENOMEM;
    if (code == 0) {
        mine->rank = rank_here(ranks);
        mine->run = *run;
        memcpy(mine->epochs, run->epochs, run->epoch_count * sizeof *run->epochs);
        code = ranks_gather(ranks, mine, bytes, reports);
    }
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        const struct run_report *report = report_at(reports, bytes, i);
        bool good = report->run.epoch_count <= epochs_max;
        for (uint32_t k = 0; good && k < report->run.epoch_count; k++)
            good = sound_epoch(&report->epochs[k]);
        for (int kind = 0; good && kind < FINDING_KINDS; kind++) {
            const struct findings_kind *found = &report->run.findings.kinds[kind];
            good = found->named <= FINDINGS_NAMED;
            for (uint32_t k = 0; good && k < found->named; k++)
                good = memchr(found->texts[k], 0, FINDING_BYTES) != NULL;
        }
        code = check_rank(ranks, &report->rank, good);
    }
    free(mine);
    if (code) {
        free(reports);
        return code;
    }
    run->read_latency_ns = run->batch_late_ns = (struct histogram){0};
    memset(run->epoch_latency_ns, 0, sizeof run->epoch_latency_ns);
    run->decode = (struct decode_figures){0};
    run->findings = (struct findings){0};
    run->read_errors = run->short_reads = run->memory_peak_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct run_report *report = report_at(reports, bytes, i);
        const struct histogram *latency = &report->run.read_latency_ns;
        assert(run->rank_count < count);
        struct result_rank *rank = &run->ranks[run->rank_count++];
        uint64_t longest_ns = 0;

        *rank = report->rank;
        for (uint32_t k = 0; k < report->run.epoch_count; k++) {
            result_epoch_add(&rank->total, &report->epochs[k]);
            if (report->epochs[k].wall_ns >= longest_ns) {
                longest_ns = report->epochs[k].wall_ns;
                rank->total.limit = report->epochs[k].limit;
            }
        }
        rank->read_p50_ns = histogram_quantile(latency, 0.5);
        rank->read_p99_ns = histogram_quantile(latency, 0.99);
        rank->read_max_ns = histogram_quantile(latency, 1);
        histogram_merge(&run->read_latency_ns, latency);
        for (int k = 0; k < RESULT_EPOCH_KINDS; k++)
            histogram_merge(&run->epoch_latency_ns[k], &report->run.epoch_latency_ns[k]);
        histogram_merge(&run->batch_late_ns, &report->run.batch_late_ns);
        decode_figures_add(&run->decode, &report->run.decode);
        findings_add(&run->findings, &report->run.findings);
        run->read_errors += report->run.read_errors;
        run->short_reads += report->run.short_reads;
        run->memory_peak_bytes += report->run.memory_peak_bytes;
        if (report->run.epochs_run < run->epochs_run)
            run->epochs_run = report->run.epochs_run;
        if (report->run.epoch_count < run->epoch_count)
            run->epoch_count = report->run.epoch_count; /* epochs that all ranks finished */
    }
    for (uint32_t k = 0; k < run->epoch_count; k++)
        merge_epochs(&report_at(reports, bytes, 0)->epochs[k], bytes, run->ranks, count,
                     &run->epochs[k]);
    free(reports);
    return 0;
}

int gather_guard(struct ranks *ranks, struct guard_counts *counts)
{
    int code = 0;
    struct guard_counts *all = ranks_collect(ranks, &code, counts, sizeof *counts);

    *counts = (struct guard_counts){0};
    for (uint32_t i = 0; all && i < ranks->place.ranks; i++)
        guard_add(counts, &all[i]);
    free(all);
    return code;
}

struct result_rank *gather_epoch(struct ranks *ranks, const struct result_epoch *epoch)
{
    struct result_rank mine = rank_here(ranks);
    int code = 0;

    mine.total = *epoch;
    struct result_rank *all = ranks_collect(ranks, &code, &mine, sizeof mine);
    for (uint32_t i = 0; code == 0 && i < ranks->place.ranks; i++)
        code = check_rank(ranks, &all[i], sound_epoch(&all[i].total));
    if (code == 0)
        return all;
    free(all);
    return NULL;
}

/* ---- notices ---- */

/* Rank 0 prints what ranks have to say: a node that reads, decodes or computes in another way than
 * asked for is slower than the others, and says so on its own ranks only. */
struct notices_report {
    uint32_t count;
    char texts[RESULT_NOTICES][RESULT_NOTICE_BYTES];
    char degraded[sizeof((struct result *)0)->degraded_reason];
};

/* Apart from numbers: what each rank found of its own share is one notice. */
static bool is_alike(const char *one, const char *other)
{
    static const char number[] = "0123456789.,";

    do {
        one += strspn(one, number);
        other += strspn(other, number);
        if (*one != *other)
            return false;
    } while (*one++ && *other++);
    return true;
}

int gather_notices(struct ranks *ranks, struct result *result)
{
    const uint32_t count = ranks->place.ranks;

    if (count == 1)
        return 0;
    struct notices_report *mine = memory_zeroed(sizeof *mine);
    int code = mine ? 0 : -ENOMEM;
    if (mine) {
        mine->count = result->notice_count;
        memcpy(mine->texts, result->notices, sizeof mine->texts);
        memcpy(mine->degraded, result->degraded_reason, sizeof mine->degraded);
    }
    struct notices_report *all = ranks_collect(ranks, &code, mine, sizeof *mine);
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        bool good = all[i].count <= RESULT_NOTICES &&
                    memchr(all[i].degraded, 0, sizeof all[i].degraded) != NULL;
        for (uint32_t k = 0; good && k < all[i].count; k++)
            good = memchr(all[i].texts[k], 0, sizeof all[i].texts[k]) != NULL;
        if (!good)
            code = fail(EPROTO, "a rank sent impossible notices: use the same build on all nodes");
    }
    for (uint32_t i = 1; code == 0 && i < count && ranks->place.rank == 0; i++) {
        for (uint32_t k = 0; k < all[i].count; k++) {
            const char *text = all[i].texts[k];
            char others[48] = "";
            uint32_t below = 0, above = 0;
            for (uint32_t other = 0; other < count; other++)
                for (uint32_t n = 0; other != i && n < all[other].count; n++)
                    if (is_alike(all[other].texts[n], text)) {
                        ++*(other < i ? &below : &above);
                        break;
                    }
            if (above)
                snprintf(others, sizeof others, " and %u other%s", above, above == 1 ? "" : "s");
            if (below == 0) /* else that rank's notice names this one */
                result_notice(result, "rank %u on %s%s: %s", i, ranks->peers[i].host, others, text);
        }
        if (all[i].degraded[0])
            result_degraded(result, "rank %u on %s: %.160s", i, ranks->peers[i].host,
                            all[i].degraded);
    }
    free(all);
    free(mine);
    return code;
}
