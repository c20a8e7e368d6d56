/* SPDX-License-Identifier: Apache-2.0
 * What gradients and reads did to each other on one fabric. */
#include "cmd/net/beside.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/stats.h"
#include "report/words.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* What the ports of all nodes moved in all rounds of a stage; NAN: unknown. */
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

/* ---- the table ---- */

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

/* ---- JSON ---- */

static void put_change(json_t *object, const struct change *change, const char *unit, bool inverse)
{
    char key[64];

    snprintf(key, sizeof key, "alone_%s", unit);
    json_put_number(object, key, inverse ? 1 / change->alone : change->alone);
    snprintf(key, sizeof key, "beside_%s", unit);
    json_put_number(object, key, inverse ? 1 / change->beside : change->beside);
    json_put_number(object, "slow_down", change->slow_down.ratio);
    json_put_number(object, "slow_down_low95", change->slow_down.low);
    json_put_number(object, "slow_down_high95", change->slow_down.high);
}

static json_t *json_stage(const struct net_beside *beside, const struct timeline *timeline,
                          enum net_stage stage)
{
    const struct provenance ports = ports_of(timeline, stage);
    json_t *object = json_object();
    double steps = 0, samples = 0, record_bytes = 0;

    for (size_t i = 0; i < beside->settings.rounds; i++) {
        steps += (double)beside->rounds[i].exchange[stage].steps;
        samples += beside->rounds[i].samples[stage];
        record_bytes += beside->rounds[i].record_bytes[stage];
    }
    json_put_text(object, "name", net_stage_names[stage]);
    json_put_number(object, "steps", steps);
    json_put_number(object, "samples", samples);
    json_put_number(object, "record_bytes", record_bytes);
    json_put_number(object, "request_bytes", request_bytes(beside, stage));
    json_put_number(object, "received_bytes", ports.received);
    json_put_number(object, "sent_bytes", ports.sent);
    json_put_number(object, "excess_bytes", ports.excess);
    json_put_number(object, "expected_gradient_bytes", ports.gradients);
    return object;
}

json_t *net_beside_json(const struct net_beside *beside, const struct timeline *timeline)
{
    const struct net_beside_settings *settings = &beside->settings;
    const struct change steps = compare(beside, NET_STAGE_EXCHANGE, step_s);
    const struct change reads = compare(beside, NET_STAGE_READS, sample_s);
    json_t *object = json_object(), *gradients = json_object(), *read = json_object();
    json_t *stages = json_array();
    char text[SENTENCE_BYTES];

    json_put_count(object, "rounds", settings->rounds);
    json_put_text(gradients, "network", settings->network);
    json_put_text(gradients, "precision", settings->halves ? "fp16" : "fp32");
    json_put_count(gradients, "bytes", beside->rhythm.bytes);
    json_put_count(gradients, "buckets", beside->rhythm.count);
    json_put_number(gradients, "compute_s", (double)settings->step_ns * 1e-9);
    put_change(gradients, &steps, "step_s", false);
    json_put_number(gradients, "alone_late_percent", late_percent(beside, NET_STAGE_EXCHANGE));
    json_put_number(gradients, "beside_late_percent", late_percent(beside, NET_STAGE_BOTH));
    json_put_text(read, "options", settings->reads);
    json_put_text(read, "cache_before", *beside->cache ? beside->cache : NULL);
    json_put_text(object, "storage", storage_text(beside, timeline, text));
    json_put_text(object, "doubt", doubt_text(beside, text));
    put_change(read, &reads, "samples_per_s", true);
    json_object_set_new(object, "gradients", gradients);
    json_object_set_new(object, "reads", read);
    for (int stage = 0; stage < NET_STAGES; stage++)
        json_array_append_new(stages, json_stage(beside, timeline, (enum net_stage)stage));
    json_object_set_new(object, "stages", stages);
    return object;
}
