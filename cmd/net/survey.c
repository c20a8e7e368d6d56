/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/survey.h"

#include "base/atomic.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t latency_bytes = 8;

struct survey_work {
    const struct survey_settings *settings;
    struct ranks *ranks;
    struct measure measure;
    struct fabric_survey *survey;
    uint64_t done, total; /* steps */
    uint64_t turn;
};

/* Collective: end a step. */
static int end_step(struct survey_work *work, int code)
{
    if (code == 0)
        code = stop_check();
    code = ranks_meet(work->ranks, code, NULL);
    work->done++;
    work->turn++;
    if (code == 0 && work->settings->progress && work->ranks->place.rank == 0)
        work->settings->progress(work->settings->progress_context, work->done, work->total);
    return code;
}

/* ---- pairs ---- */

uint32_t survey_rounds(uint32_t ranks)
{
    return ranks - 1 + ranks % 2;
}

/* A round robin tournament by the circle method; an odd number of ranks has a bye. */
uint32_t survey_partner(uint32_t ranks, uint32_t round, uint32_t rank)
{
    const uint32_t circle = survey_rounds(ranks); /* odd */
    const uint64_t idle = (uint64_t)round * ((circle + 1) / 2) % circle;
    uint32_t partner;

    assert(rank < ranks && round < circle);
    if (rank == circle)
        partner = (uint32_t)idle;
    else
        partner = rank == idle ? circle : (round + circle - rank) % circle;
    return partner < ranks ? partner : rank;
}

/* Collect the figures of all pairs: the lower rank of each has them. */
static int collect_pairs(struct survey_work *work, double *mine)
{
    const uint32_t ranks = work->ranks->place.ranks;
    const size_t count = (size_t)ranks * ranks;
    int code = 0;
    double *all = ranks_collect(work->ranks, &code, mine, count * sizeof *mine);

    for (size_t i = 0; all && i < count; i++) {
        const size_t from = i / ranks, to = i % ranks;
        mine[i] = all[(from < to ? from : to) * count + i];
    }
    free(all);
    return code;
}

/* Collectives move whole 8-byte words for each rank. */
static uint64_t collective_bytes(uint64_t bytes, uint32_t ranks)
{
    const uint64_t unit = 8 * (uint64_t)ranks;

    return bytes < unit ? unit : bytes / unit * unit;
}

static int measure_everything(struct survey_work *work)
{
    const struct survey_settings *settings = work->settings;
    double verified = 0;

    if (settings->progress && work->ranks->place.rank == 0)
        settings->progress(settings->progress_context, 0, work->total);
    int code = 0;
    if (settings->has_sizes) {
        const uint32_t rank = work->ranks->place.rank, other = work->survey->other;
        for (uint32_t i = 0; i < work->survey->size_count && code == 0; i++) {
            struct survey_size *size = &work->survey->sizes[i];
            for (int kind = 0; kind < PAIR_KINDS && code == 0; kind++)
                if (rank == 0 || rank == other)
                    code = measure_pair(&work->measure, rank == 0 ? other : 0, rank == 0,
                                        (enum pair_kind)kind, size->bytes, work->turn,
                                        &size->pair[kind]);
            code = end_step(work, code);
        }
        work->survey->has_sizes = code == 0;
    }
    if (code == 0 && settings->pairs != SURVEY_PAIRS_NONE) {
        struct fabric_survey *survey = work->survey;
        const uint32_t rank = work->ranks->place.rank, ranks = work->ranks->place.ranks;
        for (uint32_t round = 0; round < survey_rounds(ranks) && code == 0; round++) {
            const uint32_t partner = survey_partner(ranks, round, rank);
            const uint32_t mine = rank < partner ? rank : partner;
            /* All pairs of the round, or one after the other, by their lower ranks. */
            for (uint32_t lower = 0; lower < (survey->is_alone ? ranks : 1) && code == 0; lower++) {
                if (survey->is_alone && survey_partner(ranks, round, lower) <= lower)
                    continue;
                const bool leads = rank < partner;
                const bool measures = partner != rank && (!survey->is_alone || mine == lower);
                for (int kind = PAIR_LATENCY; kind <= PAIR_BACK && measures && code == 0; kind++) {
                    const size_t forth = (size_t)rank * ranks + partner;
                    const size_t back = (size_t)partner * ranks + rank;
                    const struct matrix *matrix = &survey->matrix;
                    struct stats_summary figure = {0};
                    code = measure_pair(&work->measure, partner, leads, (enum pair_kind)kind,
                                        kind == PAIR_LATENCY ? latency_bytes : settings->pair_bytes,
                                        work->turn, &figure);
                    if (leads && kind == PAIR_LATENCY)
                        matrix->latency_s[forth] = matrix->latency_s[back] = figure.median;
                    else if (leads)
                        matrix->bytes_per_s[kind == PAIR_FORTH ? forth : back] = figure.median;
                }
                code = end_step(work, code);
            }
        }
        if (code == 0)
            code = collect_pairs(work, survey->matrix.bytes_per_s);
        if (code == 0)
            code = collect_pairs(work, survey->matrix.latency_s);
        survey->has_pairs = code == 0;
    }
    if (code == 0 && settings->has_collectives) {
        for (uint32_t i = 0; i < work->survey->size_count && code == 0; i++)
            for (int kind = 0; kind < COLLECTIVES && code == 0; kind++) {
                struct survey_collective *row = &work->survey->collectives[i];
                code = measure_collective(&work->measure, (enum collective)kind, row->bytes,
                                          work->turn, &row->seconds[kind]);
                code = end_step(work, code);
            }
        work->survey->has_collectives = code == 0;
    }
    verified = (double)work->measure.verified_bytes;
    if (code == 0)
        code = ranks_sum(work->ranks, &verified, 1);
    work->survey->verified_bytes = (uint64_t)verified;
    return code;
}

int survey_run(const struct survey_settings *settings, struct transport *transport,
               struct ranks *ranks, struct fabric_survey *survey)
{
    const uint32_t count = ranks->place.ranks;
    const size_t links = (size_t)count * count;
    uint64_t most = collective_bytes(settings->to_bytes, count);
    struct transport_config config = {.ranks = ranks};
    struct survey_work work = {.settings = settings,
                               .ranks = ranks,
                               .survey = survey,
                               .turn = settings->seed,
                               .measure = {.transport = transport,
                                           .repeats = (uint32_t)settings->repeats,
                                           .repeat_ns = settings->repeat_ns,
                                           .verify = settings->verify,
                                           .damage = settings->damage}};

    *survey = (struct fabric_survey){0};
    most = most < settings->to_bytes ? settings->to_bytes : most;
    if (settings->pairs != SURVEY_PAIRS_NONE && settings->pair_bytes > most)
        most = settings->pair_bytes;
    config.bytes = measure_arena_bytes(most);
    config.arena = memory_pages(config.bytes);
    work.measure.half_bytes = config.bytes / 2;
    for (uint64_t bytes = settings->from_bytes;
         bytes <= settings->to_bytes && survey->size_count < SURVEY_SIZES;
         bytes *= settings->factor) {
        survey->sizes[survey->size_count].bytes = bytes;
        survey->collectives[survey->size_count++].bytes = collective_bytes(bytes, count);
    }
    /* The first rank on another node, or the last. */
    for (survey->other = 1; survey->other + 1 < count; survey->other++)
        if (ranks->peers[survey->other].node != ranks->peers[0].node)
            break;
    survey->is_alone = settings->pairs == SURVEY_PAIRS_ALONE ||
                       (settings->pairs == SURVEY_PAIRS_AUTO && count <= SURVEY_ALONE_RANKS);
    survey->matrix = (struct matrix){
        .ranks = count,
        .nodes = ranks->place.nodes,
        .node_of = memory_array(count, sizeof(uint32_t)),
        .bytes_per_s = memory_array(links, sizeof(double)),
        .latency_s = memory_array(links, sizeof(double)),
    };
    const struct matrix *matrix = &survey->matrix;
    int code = matrix->node_of && matrix->bytes_per_s && matrix->latency_s ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count && code == 0; i++)
        matrix->node_of[i] = ranks->peers[i].node;
    for (size_t i = 0; i < links && code == 0; i++)
        matrix->bytes_per_s[i] = matrix->latency_s[i] = NAN;
    work.total = (settings->has_sizes ? survey->size_count : 0) +
                 (settings->has_collectives ? survey->size_count * COLLECTIVES : 0) +
                 (settings->pairs == SURVEY_PAIRS_NONE ? 0
                  : survey->is_alone                   ? count * (count - 1) / 2
                                                       : survey_rounds(count));
    if (code == 0 && !config.arena)
        code = -ENOMEM;
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = transport_open(transport, &config);
    if (code == 0) {
        code = measure_everything(&work);
        transport_describe(transport, survey->transport);
    }
    transport_close(transport, code != 0);
    free(config.arena);
    return code;
}

void survey_destroy(struct fabric_survey *survey)
{
    free(survey->matrix.node_of);
    free(survey->matrix.bytes_per_s);
    free(survey->matrix.latency_s);
}
