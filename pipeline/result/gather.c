/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/gather.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct result_rank describe(const struct ranks *ranks)
{
    const struct ranks_place *place = &ranks->place;
    struct result_rank rank = {
        .rank = place->rank, .node = place->node, .leads = place->local_rank == 0};

    memcpy(rank.host, place->host, sizeof rank.host);
    return rank;
}

/* Check what another rank sent: node in range, texts terminated. Ranks are trusted, but may run
 * another build. */
static bool is_bool(const bool *value)
{
    return *(const unsigned char *)value <= 1;
}

static bool sound_bytes(const struct result_bytes *bytes)
{
    return is_bool(&bytes->known) && is_bool(&bytes->of_node) &&
           memchr(bytes->method, 0, sizeof bytes->method) &&
           memchr(bytes->reason, 0, sizeof bytes->reason);
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
           sound_bytes(&epoch->device);
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

static bool sound_server(const struct server_result *server)
{
    return server->state >= SERVER_NONE && server->state <= SERVER_WARM &&
           is_bool(&server->drop.made) && is_bool(&server->check.made) &&
           is_bool(&server->looked) && is_bool(&server->looked_before) &&
           is_bool(&server->disk_known) && sound_look(&server->before) &&
           sound_look(&server->start) &&
           memchr(server->drop.output, 0, sizeof server->drop.output) &&
           memchr(server->check.output, 0, sizeof server->check.output) &&
           memchr(server->reason, 0, sizeof server->reason);
}

static int check_cold(const struct ranks *ranks, const struct cold_report *report)
{
    const struct result_cold *cold = &report->cold;

    return check_rank(ranks, &report->rank,
                      is_bool(&cold->dropped) && is_bool(&cold->metadata_dropped) &&
                          is_bool(&cold->bypassed) && cold->pages >= RESIDENCY_COLD &&
                          cold->pages <= RESIDENCY_UNVERIFIED && sound_server(&cold->server) &&
                          memchr(cold->method, 0, sizeof cold->method) &&
                          memchr(cold->reason, 0, sizeof cold->reason));
}

/* Rank 0 asked the server; the server's answer holds for all nodes. A node's first rank dropped its
 * caches; each rank looked at what it reads. */
static void settle_cold(const struct cold_report *reports, uint32_t ranks, struct result_run *run)
{
    for (uint32_t i = 0; i < ranks; i++) {
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
    for (uint32_t i = 0; i < run->node_count; i++)
        if (i != reports[0].rank.node)
            add_cold(&run->cold, &run->nodes[i].cold, run->nodes[i].host);
    for (uint32_t i = 0; i < run->node_count; i++)
        run->nodes[i].cold.state = result_cold_state(&run->nodes[i].cold);
    run->cold.state = result_cold_state(&run->cold);
}

int gather_cold(struct ranks *ranks, const struct result_cold *mine, struct result_run *run)
{
    const uint32_t count = ranks->place.ranks;
    struct cold_report report = {.rank = describe(ranks), .cold = *mine};

    run->cold = *mine;
    run->cold.state = result_cold_state(mine);
    if (count == 1)
        return 0;
    struct cold_report *reports = memory_array(count, sizeof *reports);
    run->nodes = memory_array(ranks->place.nodes, sizeof *run->nodes);
    int code = reports && run->nodes ? 0 : -ENOMEM;
    if (code == 0)
        code = ranks_gather(ranks, &report, sizeof report, reports);
    for (uint32_t i = 0; code == 0 && i < count; i++)
        code = check_cold(ranks, &reports[i]);
    if (code == 0) {
        run->node_count = ranks->place.nodes;
        settle_cold(reports, count, run);
    }
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

static int check_run(const struct ranks *ranks, const struct run_report *report,
                     uint64_t epochs_max)
{
    bool good = report->run.epoch_count <= epochs_max && findings_sound(&report->run.findings);

    for (uint32_t i = 0; good && i < report->run.epoch_count; i++)
        good = sound_epoch(&report->epochs[i]);
    return check_rank(ranks, &report->rank, good);
}

static void merge_device(struct result_bytes *sum, const struct result_bytes *device, bool leads)
{
    if (!device->known) {
        *sum = *device;
        return;
    }
    if (sum->known && (leads || !device->of_node))
        sum->bytes += device->bytes;
    sum->of_node |= device->of_node;
    sum->beneath_known = sum->beneath_known && device->beneath_known;
    if (leads)
        sum->beneath_bytes += device->beneath_bytes;
}

/* Return the time from the first start of an epoch to its last end. Ranks begin at slightly
 * different times, so it is longer than any rank's own, and clocks of nodes cannot be compared; but
 * all ranks learn at about the same time that all have ended. To the first one that is the longest
 * time after its start; what it took to learn it is what the last one waited. */
struct common_span {
    uint64_t longest_ns, learning_ns;
};

static void stretch(struct common_span *span, const struct result_epoch *epoch)
{
    const uint64_t own_ns = epoch->wall_ns;
    const uint64_t met_ns = epoch->met_ns > own_ns ? epoch->met_ns : own_ns;

    if (met_ns > span->longest_ns)
        span->longest_ns = met_ns;
    if (met_ns - own_ns < span->learning_ns)
        span->learning_ns = met_ns - own_ns;
}

static uint64_t time_of_all(const struct result_epoch *const *each, uint32_t count)
{
    struct common_span span = {.learning_ns = UINT64_MAX};

    for (uint32_t i = 0; i < count; i++)
        stretch(&span, each[i]);
    return span.longest_ns - span.learning_ns;
}

uint64_t gather_epoch_ns(const struct result_rank *ranks, uint32_t count)
{
    struct common_span span = {.learning_ns = UINT64_MAX};

    for (uint32_t i = 0; i < count; i++)
        stretch(&span, &ranks[i].total);
    return span.longest_ns - span.learning_ns;
}

/* Merge one epoch of `count` ranks. */
static void merge_epochs(const struct result_epoch *const *each, const struct result_rank *ranks,
                         uint32_t count, struct result_epoch *merged)
{
    const struct result_epoch *slowest = each[0];

    *merged = (struct result_epoch){.merged = each[0]->merged,
                                    .epoch = each[0]->epoch,
                                    .start_ns = each[0]->start_ns,
                                    .device = each[0]->device};
    for (uint32_t i = 0; i < count; i++) {
        result_epoch_add(merged, each[i]);
        if (i > 0)
            merge_device(&merged->device, &each[i]->device, ranks[i].leads);
        if (each[i]->wall_ns > slowest->wall_ns)
            slowest = each[i];
    }
    result_epoch_average(merged, count);
    merged->first_batch_ns = merged->paced_ns = merged->read_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (each[i]->steady_ns == 0)
            merged->steady_samples = merged->steady_ns = 0;
        if (each[i]->first_batch_ns > merged->first_batch_ns)
            merged->first_batch_ns = each[i]->first_batch_ns;
        if (each[i]->paced_ns > merged->paced_ns)
            merged->paced_ns = each[i]->paced_ns;
        if (each[i]->read_ns > merged->read_ns)
            merged->read_ns = each[i]->read_ns;
    }
    merged->wall_ns = time_of_all(each, count);
    merged->limit = slowest->limit;
}

/* Return a rank's total over its epochs; its bottleneck is that of the longest epoch. */
static struct result_epoch total_of(const struct run_report *report)
{
    struct result_epoch total = {0};
    uint64_t longest_ns = 0;

    for (uint32_t i = 0; i < report->run.epoch_count; i++) {
        result_epoch_add(&total, &report->epochs[i]);
        if (report->epochs[i].wall_ns >= longest_ns) {
            longest_ns = report->epochs[i].wall_ns;
            total.limit = report->epochs[i].limit;
        }
    }
    return total;
}

static const struct run_report *report_at(const void *reports, size_t bytes, uint32_t rank)
{
    return (const struct run_report *)((const char *)reports + bytes * rank);
}

static void merge_rank(const struct run_report *report, struct result_run *run)
{
    const struct histogram *latency = &report->run.read_latency_ns;
    struct result_rank *rank = &run->ranks[run->rank_count++];

    *rank = report->rank;
    rank->total = total_of(report);
    rank->read_p50_ns = histogram_quantile(latency, 0.5);
    rank->read_p99_ns = histogram_quantile(latency, 0.99);
    rank->read_max_ns = histogram_quantile(latency, 1);
    histogram_merge(&run->read_latency_ns, latency);
    for (int i = 0; i < RESULT_EPOCH_KINDS; i++)
        histogram_merge(&run->epoch_latency_ns[i], &report->run.epoch_latency_ns[i]);
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

static void merge_run(const void *reports, size_t bytes, uint32_t ranks,
                      const struct result_epoch **each, struct result_run *run)
{
    run->read_latency_ns = run->batch_late_ns = (struct histogram){0};
    memset(run->epoch_latency_ns, 0, sizeof run->epoch_latency_ns);
    run->decode = (struct decode_figures){0};
    run->findings = (struct findings){0};
    run->read_errors = run->short_reads = run->memory_peak_bytes = 0;
    for (uint32_t i = 0; i < ranks; i++)
        merge_rank(report_at(reports, bytes, i), run);
    for (uint32_t k = 0; k < run->epoch_count; k++) {
        for (uint32_t i = 0; i < ranks; i++)
            each[i] = &report_at(reports, bytes, i)->epochs[k];
        merge_epochs(each, run->ranks, ranks, &run->epochs[k]);
    }
}

int gather_run(struct ranks *ranks, uint64_t epochs_max, struct result_run *run)
{
    const uint32_t count = ranks->place.ranks;
    const size_t bytes = sizeof(struct run_report) + epochs_max * sizeof(struct result_epoch);

    if (count == 1)
        return 0;
    struct run_report *mine = memory_zeroed(bytes);
    void *reports = memory_array(count, bytes);
    const struct result_epoch **each = memory_array(count, sizeof *each);
    run->ranks = memory_array(count, sizeof *run->ranks);
    int code = mine && reports && each && run->ranks ? 0 : -ENOMEM;
    if (code == 0) {
        mine->rank = describe(ranks);
        mine->run = *run;
        memcpy(mine->epochs, run->epochs, run->epoch_count * sizeof *run->epochs);
        code = ranks_gather(ranks, mine, bytes, reports);
    }
    for (uint32_t i = 0; code == 0 && i < count; i++)
        code = check_run(ranks, report_at(reports, bytes, i), epochs_max);
    if (code == 0)
        merge_run(reports, bytes, count, each, run);
    free(each);
    free(reports);
    free(mine);
    return code;
}

int gather_guard(struct ranks *ranks, struct guard_counts *counts)
{
    struct guard_counts *all = memory_array(ranks->place.ranks, sizeof *all);
    int code = ranks_meet(ranks, all ? 0 : -ENOMEM, NULL);

    if (code == 0)
        code = ranks_gather(ranks, counts, sizeof *counts, all);
    *counts = (struct guard_counts){0};
    for (uint32_t i = 0; code == 0 && i < ranks->place.ranks; i++)
        guard_add(counts, &all[i]);
    free(all);
    return code;
}

struct result_rank *gather_epoch(struct ranks *ranks, const struct result_epoch *epoch)
{
    struct result_rank mine = describe(ranks);
    struct result_rank *all = memory_array(ranks->place.ranks, sizeof *all);

    mine.total = *epoch;
    int code = all ? ranks_gather(ranks, &mine, sizeof mine, all) : -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < ranks->place.ranks; i++)
        code = check_rank(ranks, &all[i], sound_epoch(&all[i].total));
    if (code == 0)
        return all;
    free(all);
    return NULL;
}
