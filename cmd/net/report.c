/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/report.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/report.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double MB = 1e6;
/* A matrix of more ranks is in the JSON only; as many suspects are named. */
enum { SHOWN_RANKS = 8, SUSPECTS = 16 };

/* ---- the table ---- */

/* "1,234 ±2%": half of the 95% interval; text: WORDS_BYTES. */
static const char *rate_text(const struct stats_summary *figure, double unit, char *text)
{
    char rate[WORDS_BYTES];
    const double half = stats_half_width(figure);

    words_rate(figure->median / unit, rate);
    if (half > 0.99)
        snprintf(text, WORDS_BYTES, "%.16s >99%%", rate);
    else if (isfinite(half))
        snprintf(text, WORDS_BYTES, "%.16s %2.0f%%", rate, 100 * half);
    else
        snprintf(text, WORDS_BYTES, "%.16s", rate);
    return text;
}

static double bus_rate(const struct fabric_survey *survey, const struct survey_collective *row,
                       int kind)
{
    return (double)row->bytes / row->seconds[kind].median *
           collective_bus_factor((enum collective)kind, survey->matrix.ranks);
}

double net_report_all_reduce(const struct fabric_survey *survey)
{
    return survey->has_collectives && survey->size_count
               ? bus_rate(survey, &survey->collectives[survey->size_count - 1],
                          COLLECTIVE_ALL_REDUCE)
               : NAN;
}

/* Bytes of a figure over the whole time; NAN if unknown. */
static double total_of(const struct timeline *timeline, const char *key)
{
    const uint32_t column = timeline_find(timeline, key);
    const double end_s =
        timeline->row_count ? timeline_time_s(timeline, timeline->row_count - 1) : 0;

    return column == timeline->column_count ? NAN
                                            : timeline_mean(timeline, column, 0, end_s) * end_s;
}

int net_report_text(const struct net_asked *asked, const struct fabric_survey *survey)
{
    const struct matrix *matrix = &survey->matrix;
    const struct ranks_peer *peers = asked->ranks->peers;
    struct suspect suspects[SUSPECTS];
    double rates[2] = {NAN, NAN}, latencies[2] = {NAN, NAN}; /* medians between and within nodes */
    char bytes[32];
    int count = survey->has_pairs ? matrix_judge(matrix, suspects, SUSPECTS) : 0;

    for (int within = 0; within < 2 && survey->has_pairs && count >= 0; within++)
        if (matrix_median(matrix, matrix->bytes_per_s, within, &rates[within]) ||
            matrix_median(matrix, matrix->latency_s, within, &latencies[within]))
            count = -ENOMEM;
    if (count < 0)
        return count;
    printf("iobench " PACKAGE_VERSION " net: %s, %u ranks on %u node%s\n\n",
           !asked->verdict.valid             ? "INVALID"
           : *asked->verdict.degraded_reason ? "DEGRADED"
           : asked->settings->verify         ? "valid"
                                             : "NOT VERIFIED",
           survey->matrix.ranks, survey->matrix.nodes, survey->matrix.nodes == 1 ? "" : "s");
    if (!asked->verdict.valid)
        words_print(stdout, "  INVALID", 11, escape_shown(asked->verdict.invalid_reason));
    if (*asked->verdict.degraded_reason)
        words_print(stdout, "  DEGRADED", 11, escape_shown(asked->verdict.degraded_reason));
    for (uint32_t i = 0; i < asked->verdict.notice_count; i++)
        words_print(stdout, "  Note", 11, escape_shown(asked->verdict.notices[i]));
    words_print(stdout, "  Fabric", 11, escape_shown(survey->transport));
    printf("  Figures  medians of %llu; %%: half of the 95%% interval\n",
           (unsigned long long)asked->settings->repeats);
    if (asked->settings->verify)
        printf("  Data     %s received and verified, nothing damaged\n",
               bytes_text(survey->verified_bytes, bytes, sizeof bytes));
    /* What the ports of all nodes did meanwhile; without the loopback. */
    const double received =
        asked->timeline ? total_of(asked->timeline, "fabric_receive_bytes_per_s") : NAN;
    const double sent =
        asked->timeline ? total_of(asked->timeline, "fabric_send_bytes_per_s") : NAN;
    char received_text[32], sent_text[32];
    if (isfinite(received) && isfinite(sent))
        printf("  Ports    %s received, %s sent by all nodes meanwhile\n",
               bytes_text((uint64_t)received, received_text, sizeof received_text),
               bytes_text((uint64_t)sent, sent_text, sizeof sent_text));
    if (survey->has_sizes) {
        char text[PAIR_KINDS][WORDS_BYTES];
        printf("\n  Messages between rank 0 on %s", escape_shown(peers[0].host));
        printf(" and rank %u on %s\n", survey->other, escape_shown(peers[survey->other].host));
        printf("  %10s %14s %15s %15s %15s\n", "size", "latency us", "forth MB/s", "back MB/s",
               "both MB/s");
        for (uint32_t i = 0; i < survey->size_count; i++) {
            const struct survey_size *size = &survey->sizes[i];
            for (int kind = 0; kind < PAIR_KINDS; kind++)
                rate_text(&size->pair[kind], kind == PAIR_LATENCY ? 1e-6 : MB, text[kind]);
            printf("  %10s %14s %15s %15s %15s\n", bytes_text(size->bytes, bytes, sizeof bytes),
                   text[PAIR_LATENCY], text[PAIR_FORTH], text[PAIR_BACK], text[PAIR_BOTH]);
        }
    }
    if (survey->has_pairs) {
        char rate[WORDS_BYTES], other[WORDS_BYTES];
        printf("\n  All pairs, messages of %s, %s\n",
               bytes_text(asked->settings->pair_bytes, bytes, sizeof bytes),
               survey->is_alone ? "one pair at a time: MB/s" : "disjoint pairs at once: MB/s");
        for (uint32_t to = 0; matrix->ranks <= SHOWN_RANKS && to < matrix->ranks; to++)
            printf(to ? " %7u" : "  from\\to %7u", to);
        for (uint32_t from = 0; matrix->ranks <= SHOWN_RANKS && from < matrix->ranks; from++) {
            printf("\n  %7u", from);
            for (uint32_t to = 0; to < matrix->ranks; to++)
                printf(" %7s",
                       words_rate(matrix->bytes_per_s[from * matrix->ranks + to] / MB, rate));
        }
        if (matrix->ranks <= SHOWN_RANKS)
            printf("\n");
        for (int within = 0; within < 2; within++)
            if (isfinite(rates[within]))
                printf("  Median   %s MB/s, %s us%s\n", words_rate(rates[within] / MB, rate),
                       words_rate(1e6 * latencies[within], other),
                       matrix->nodes == 1 ? ""
                       : within           ? " within nodes"
                                          : " between nodes");
        for (int i = 0; i < count; i++) {
            const struct suspect *suspect = &suspects[i];
            words_rate(suspect->bytes_per_s / MB, rate);
            words_rate(suspect->typical / MB, other);
            printf("  %-8s ", suspect->kind == SUSPECT_ASYMMETRY ? "Uneven" : "Slow");
            if (suspect->kind == SUSPECT_SENDER || suspect->kind == SUSPECT_RECEIVER) {
                uint32_t rank = 0; /* one of the node */
                while (matrix->nodes > 1 && matrix->node_of[rank] != suspect->from)
                    rank++;
                if (matrix->nodes > 1)
                    printf("node %s", escape_shown(peers[rank].host));
                else
                    printf("rank %u", suspect->from);
                printf(" %s at most %s MB/s, others %s\n",
                       suspect->kind == SUSPECT_SENDER ? "sends" : "receives", rate, other);
                continue;
            }
            printf("rank %u on %s", suspect->from, escape_shown(peers[suspect->from].host));
            printf(" to rank %u on %s: %s MB/s, %s %s\n", suspect->to,
                   escape_shown(peers[suspect->to].host), rate,
                   suspect->kind == SUSPECT_LINK ? "others" : "back", other);
        }
        if (count == 0)
            printf("  Slow     no node, link or direction stands out\n");
    }
    if (survey->has_collectives) {
        char text[WORDS_BYTES];
        for (int table = 0; table < 2; table++) {
            printf("\n  Collectives of %u ranks: %s\n  %10s", survey->matrix.ranks,
                   table ? "bus bandwidth, MB/s" : "time of the slowest rank, us", "size");
            for (int kind = 0; kind < COLLECTIVES; kind++)
                printf(" %*s", kind == COLLECTIVE_REDUCE_SCATTER ? 14 : 12, collective_names[kind]);
            for (uint32_t i = 0; i < survey->size_count; i++) {
                const struct survey_collective *row = &survey->collectives[i];
                printf("\n  %10s", bytes_text(row->bytes, text, sizeof text));
                for (int kind = 0; kind < COLLECTIVES; kind++)
                    printf(" %*s", kind == COLLECTIVE_REDUCE_SCATTER ? 14 : 12,
                           table ? words_rate(bus_rate(survey, row, kind) / MB, text)
                                 : rate_text(&row->seconds[kind], 1e-6, text));
            }
            printf("\n");
        }
    }
    if (asked->beside)
        net_beside_text(asked->beside, asked->timeline);
    return 0;
}

/* ---- JSON ---- */

/* PREFIX_UNIT and the ends of its interval. */
static void put_figure(json_t *object, const char *prefix, const char *unit,
                       const struct stats_summary *figure)
{
    char key[64];

    snprintf(key, sizeof key, "%s_%s", prefix, unit);
    json_put_number(object, key, figure->median);
    snprintf(key, sizeof key, "%s_low_%s", prefix, unit);
    json_put_number(object, key, figure->low);
    snprintf(key, sizeof key, "%s_high_%s", prefix, unit);
    json_put_number(object, key, figure->high);
}

static json_t *json_rows(const struct matrix *matrix, const double *values)
{
    json_t *rows = json_array();

    for (uint32_t from = 0; from < matrix->ranks; from++) {
        json_t *row = json_array();
        for (uint32_t to = 0; to < matrix->ranks; to++)
            json_array_append_new(row, json_number(values[(size_t)from * matrix->ranks + to]));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *net_report_json(const struct net_asked *asked, const struct fabric_survey *survey)
{
    static const char *const pair_names[PAIR_KINDS] = {"latency", "forth", "back", "both"};
    static const char *const suspect_names[] = {"node_sends", "node_receives", "link", "asymmetry"};
    const struct survey_settings *settings = asked->settings;
    const struct matrix *matrix = &survey->matrix;
    struct suspect *suspects = NULL;
    json_t *object, *list, *row;
    int count = 0;

    if (survey->has_pairs) {
        const size_t most = (size_t)matrix->ranks * matrix->ranks + 2 * (size_t)matrix->ranks;
        suspects = memory_array(most, sizeof *suspects);
        count = suspects ? matrix_judge(matrix, suspects, (int)most) : -ENOMEM;
    }
    if (count < 0) {
        free(suspects);
        return NULL;
    }
    json_t *document = json_pack("{s:s, s:i, s:s, s:o, s:o, s:o}", "schema", "iobench-net",
                                 "schema_version", SCHEMA_VERSION, "iobench_version",
                                 PACKAGE_VERSION, "command", json_text(asked->command), "started",
                                 json_text(asked->verdict.environment.started), "place",
                                 report_machine(&asked->verdict.environment));
    report_verdict(document, &asked->verdict);
    json_put_text(document, "transport", survey->transport);
    json_put_count(document, "nodes", matrix->nodes);
    list = json_put_new(document, "ranks", json_array());
    for (uint32_t i = 0; i < asked->ranks->place.ranks; i++)
        json_array_append_new(list, json_pack("{s:o, s:i}", "host",
                                              json_text(asked->ranks->peers[i].host), "node",
                                              asked->ranks->peers[i].node));
    object = json_pack("{s:o, s:I, s:o, s:b, s:I}", "transport", json_text(asked->transport),
                       "repeats", (json_int_t)settings->repeats, "repeat_s",
                       json_number((double)settings->repeat_ns * 1e-9), "verify", settings->verify,
                       "pair_bytes", (json_int_t)settings->pair_bytes);
    json_put_count(object, "seed", settings->seed);
    json_object_set_new(document, "settings", object);
    json_put_number(document, "verified_bytes",
                    settings->verify ? (double)survey->verified_bytes : NAN);
    object = json_put_new(document, "messages", survey->has_sizes ? json_object() : json_null());
    if (survey->has_sizes) {
        json_put_count(object, "from_rank", 0);
        json_put_count(object, "to_rank", survey->other);
        list = json_put_new(object, "sizes", json_array());
        for (uint32_t i = 0; i < survey->size_count; i++) {
            row = json_append_new(list, json_object());
            json_put_count(row, "bytes", survey->sizes[i].bytes);
            for (int kind = 0; kind < PAIR_KINDS; kind++)
                put_figure(row, pair_names[kind], kind == PAIR_LATENCY ? "s" : "bytes_per_s",
                           &survey->sizes[i].pair[kind]);
        }
    }
    object = json_put_new(document, "pairs", survey->has_pairs ? json_object() : json_null());
    if (survey->has_pairs) {
        json_object_set_new(object, "one_at_a_time", json_boolean(survey->is_alone));
        json_object_set_new(object, "bytes_per_s", json_rows(matrix, matrix->bytes_per_s));
        json_object_set_new(object, "latency_s", json_rows(matrix, matrix->latency_s));
        list = json_put_new(object, "suspects", json_array());
        for (int i = 0; i < count; i++) {
            const bool is_node = suspects[i].kind <= SUSPECT_RECEIVER;
            row = json_append_new(list, json_object());
            json_put_text(row, "kind", suspect_names[suspects[i].kind]);
            json_put_count(row, is_node ? matrix->nodes > 1 ? "node" : "rank" : "from_rank",
                           suspects[i].from);
            if (!is_node)
                json_put_count(row, "to_rank", suspects[i].to);
            json_put_number(row, "bytes_per_s", suspects[i].bytes_per_s);
            json_put_number(row, "typical_bytes_per_s", suspects[i].typical);
        }
    }
    free(suspects);
    list =
        json_put_new(document, "collectives", survey->has_collectives ? json_array() : json_null());
    for (int kind = 0; survey->has_collectives && kind < COLLECTIVES; kind++)
        for (uint32_t i = 0; i < survey->size_count; i++) {
            const struct survey_collective *figures = &survey->collectives[i];
            row = json_append_new(list, json_object());
            json_put_text(row, "name", collective_names[kind]);
            json_put_count(row, "bytes", figures->bytes);
            put_figure(row, "time", "s", &figures->seconds[kind]);
            json_put_number(row, "algorithm_bytes_per_s",
                            (double)figures->bytes / figures->seconds[kind].median);
            json_put_number(row, "bus_bytes_per_s", bus_rate(survey, figures, kind));
        }
    json_object_set_new(document, "beside",
                        asked->beside ? net_beside_json(asked->beside, asked->timeline)
                                      : json_null());
    json_object_set_new(document, "series",
                        asked->timeline ? report_timeline(asked->timeline) : json_null());
    return seal_add(document);
}

/* ---- gradients and reads beside each other ---- */

/* Something that is measured alone and beside the other, in seconds of the same work. */
struct change {
    double alone, beside; /* means over the rounds */
    struct paired slow_down;
};

const char *const net_stage_names[NET_STAGES] = {"exchange", "reads", "both"};

static double step_s(const struct net_round *round, enum net_stage stage)
{
    return round->exchange[stage].time_s / (double)round->exchange[stage].steps;
}

static double sample_s(const struct net_round *round, enum net_stage stage)
{
    return round->wall_s[stage] / round->samples[stage];
}

static struct change compare(const struct net_beside *beside, enum net_stage alone,
                             double (*cost)(const struct net_round *round, enum net_stage stage))
{
    const size_t rounds = beside->settings.rounds;
    double each_alone[NET_BESIDE_ROUNDS], each_beside[NET_BESIDE_ROUNDS];
    struct change change = {0};

    assert(rounds <= NET_BESIDE_ROUNDS);
    for (size_t i = 0; i < rounds; i++) {
        each_alone[i] = cost(&beside->rounds[i], alone);
        each_beside[i] = cost(&beside->rounds[i], NET_STAGE_BOTH);
        change.alone += each_alone[i] / (double)rounds;
        change.beside += each_beside[i] / (double)rounds;
    }
    change.slow_down = paired_test(each_alone, each_beside, rounds, 1, false);
    return change;
}

/* Share of the steps' time in which the trainer would have waited for gradients. */
static double late_percent(const struct net_beside *beside, enum net_stage stage)
{
    double late_s = 0, time_s = 0;

    for (size_t i = 0; i < beside->settings.rounds; i++) {
        late_s += beside->rounds[i].exchange[stage].late_s;
        time_s += beside->rounds[i].exchange[stage].time_s;
    }
    return 100 * late_s / time_s;
}

static double request_bytes(const struct net_beside *beside, enum net_stage stage)
{
    double sum = 0;

    for (size_t i = 0; i < beside->settings.rounds; i++)
        sum += beside->rounds[i].request_bytes[stage];
    return sum;
}

/* Bytes that the ports of all nodes moved in all rounds of a stage; NAN: unknown. */
static struct provenance ports_of(const struct timeline *timeline, enum net_stage stage)
{
    struct provenance sum = {.received = NAN, .sent = NAN, .excess = NAN, .gradients = NAN};
    bool has_any = false;

    for (uint32_t i = 0; timeline && i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        if (strcmp(phase->name, net_stage_names[stage]) != 0)
            continue;
        if (has_any)
            provenance_add(&sum, &phase->provenance);
        else
            sum = phase->provenance;
        has_any = true;
    }
    return sum;
}

static const char *bytes_or_dash(double bytes, char *text)
{
    if (!isfinite(bytes))
        snprintf(text, 32, "-");
    else
        bytes_text((uint64_t)fabs(bytes), text, 32);
    return text;
}

static void print_change(const char *name, const char *alone, const char *both,
                         const struct paired *slow_down)
{
    printf("  %-18s %14s %14s  %.2f", name, alone, both, slow_down->ratio);
    if (slow_down->coverage > 0)
        printf(" (%.2f .. %.2f)", slow_down->low, slow_down->high);
    putchar('\n');
}

enum { SENTENCE_BYTES = 256 };

/* Do the reads come over these ports? Gradients are sent as often as they are received. */
static const char *storage_text(const struct net_beside *beside, const struct timeline *timeline,
                                char text[SENTENCE_BYTES])
{
    const double alone =
        ports_of(timeline, NET_STAGE_READS).excess / request_bytes(beside, NET_STAGE_READS);
    const double both =
        ports_of(timeline, NET_STAGE_BOTH).excess / request_bytes(beside, NET_STAGE_BOTH);

    if (!isfinite(alone) || !isfinite(both))
        snprintf(text, SENTENCE_BYTES, "the ports cannot be counted here");
    else if (alone < 0.5)
        snprintf(text, SENTENCE_BYTES,
                 "the reads did not come over these ports (received - sent is %.2f of them): "
                 "local disks, the page cache or the loopback; what they lost, they lost to "
                 "processors and memory",
                 alone);
    else
        snprintf(text, SENTENCE_BYTES,
                 "received - sent is %.3f of what was asked to read alone, %.3f beside gradients",
                 alone, both);
    return text;
}

/* A stage of few steps says little about them: NULL if they are enough. */
static const char *doubt_text(const struct net_beside *beside, char text[SENTENCE_BYTES])
{
    enum { STEPS_LEAST = 10 };
    uint64_t fewest = UINT64_MAX;

    for (size_t i = 0; i < beside->settings.rounds; i++)
        if (beside->rounds[i].exchange[NET_STAGE_BOTH].steps < fewest)
            fewest = beside->rounds[i].exchange[NET_STAGE_BOTH].steps;
    snprintf(text, SENTENCE_BYTES,
             "the reads lasted %llu steps only: give them more (--epochs, a larger set), or a "
             "shorter --step-time",
             (unsigned long long)fewest);
    return fewest < STEPS_LEAST ? text : NULL;
}

void net_beside_text(const struct net_beside *beside, const struct timeline *timeline)
{
    const struct net_beside_settings *settings = &beside->settings;
    char bytes[32], text[SENTENCE_BYTES];

    printf("\n  Gradients and reads: %llu rounds of each alone and both at once\n",
           (unsigned long long)settings->rounds);
    words_printf(stdout, "", 2,
                 "%s in %s: %s in %u buckets, %.4g ms of computing a step, all-reduced by %u ranks",
                 settings->network, settings->halves ? "FP16" : "FP32",
                 bytes_text(beside->rhythm.bytes, bytes, sizeof bytes), beside->rhythm.count,
                 (double)settings->step_ns * 1e-6, beside->ranks);
    words_printf(stdout, "", 2, "reads: %s; cache %s", settings->reads,
                 *beside->cache ? escape_shown(beside->cache) : "unknown");
    putchar('\n');
    const struct change steps = compare(beside, NET_STAGE_EXCHANGE, step_s);
    const struct change reads = compare(beside, NET_STAGE_READS, sample_s);
    char alone[WORDS_BYTES], both[WORDS_BYTES];
    printf("  %-18s %14s %14s  %s\n", "", "alone", "both at once", "slow-down");
    snprintf(alone, sizeof alone, "%.1f", 1e3 * steps.alone);
    snprintf(both, sizeof both, "%.1f", 1e3 * steps.beside);
    print_change("step, ms", alone, both, &steps.slow_down);
    printf("  %-18s %13.1f%% %13.1f%%\n", "waits for gradients",
           late_percent(beside, NET_STAGE_EXCHANGE), late_percent(beside, NET_STAGE_BOTH));
    words_rate(1 / reads.alone, alone);
    words_rate(1 / reads.beside, both);
    print_change("reads, samples/s", alone, both, &reads.slow_down);
    char texts[5][32];
    printf("\n  %-10s %12s %12s %12s %14s %12s\n", "Ports", "received", "sent", "difference",
           "asked to read", "gradients");
    for (int stage = 0; stage < NET_STAGES; stage++) {
        const struct provenance ports = ports_of(timeline, (enum net_stage)stage);
        printf("  %-10s %12s %12s %s%11s %14s %12s\n", net_stage_names[stage],
               bytes_or_dash(ports.received, texts[0]), bytes_or_dash(ports.sent, texts[1]),
               ports.excess < 0 ? "-" : " ", bytes_or_dash(ports.excess, texts[2]),
               bytes_or_dash(request_bytes(beside, (enum net_stage)stage), texts[3]),
               bytes_or_dash(ports.gradients, texts[4]));
    }
    words_print(stdout, "  Storage", 11, storage_text(beside, timeline, text));
    if (doubt_text(beside, text))
        words_print(stdout, "  Doubt", 11, text);
}

json_t *net_beside_json(const struct net_beside *beside, const struct timeline *timeline)
{
    const struct net_beside_settings *settings = &beside->settings;
    const struct change steps = compare(beside, NET_STAGE_EXCHANGE, step_s);
    const struct change reads = compare(beside, NET_STAGE_READS, sample_s);
    json_t *stages = json_array();
    char storage[SENTENCE_BYTES], doubt[SENTENCE_BYTES];

    for (enum net_stage stage = 0; stage < NET_STAGES; stage++) {
        const struct provenance ports = ports_of(timeline, stage);
        double made = 0, samples = 0, record_bytes = 0;
        for (size_t i = 0; i < settings->rounds; i++) {
            made += (double)beside->rounds[i].exchange[stage].steps;
            samples += beside->rounds[i].samples[stage];
            record_bytes += beside->rounds[i].record_bytes[stage];
        }
        json_array_append_new(
            stages, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                              net_stage_names[stage], "steps", json_number(made), "samples",
                              json_number(samples), "record_bytes", json_number(record_bytes),
                              "request_bytes", json_number(request_bytes(beside, stage)),
                              "received_bytes", json_number(ports.received), "sent_bytes",
                              json_number(ports.sent), "excess_bytes", json_number(ports.excess),
                              "expected_gradient_bytes", json_number(ports.gradients)));
    }
    json_t *gradients = json_pack(
        "{s:s, s:s, s:I, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "network",
        settings->network, "precision", settings->halves ? "fp16" : "fp32", "bytes",
        (json_int_t)beside->rhythm.bytes, "buckets", beside->rhythm.count, "compute_s",
        json_number((double)settings->step_ns * 1e-9), "alone_step_s", json_number(steps.alone),
        "beside_step_s", json_number(steps.beside), "slow_down", json_number(steps.slow_down.ratio),
        "slow_down_low95", json_number(steps.slow_down.low), "slow_down_high95",
        json_number(steps.slow_down.high), "alone_late_percent",
        json_number(late_percent(beside, NET_STAGE_EXCHANGE)), "beside_late_percent",
        json_number(late_percent(beside, NET_STAGE_BOTH)));
    json_t *read = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "options", json_text(settings->reads),
        "cache_before", json_text(*beside->cache ? beside->cache : NULL), "alone_samples_per_s",
        json_number(1 / reads.alone), "beside_samples_per_s", json_number(1 / reads.beside),
        "slow_down", json_number(reads.slow_down.ratio), "slow_down_low95",
        json_number(reads.slow_down.low), "slow_down_high95", json_number(reads.slow_down.high));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "rounds", (json_int_t)settings->rounds,
                     "storage", json_text(storage_text(beside, timeline, storage)), "doubt",
                     json_text(doubt_text(beside, doubt)), "gradients", gradients, "reads", read,
                     "stages", stages);
}
