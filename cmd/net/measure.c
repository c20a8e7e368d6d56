/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/measure.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Messages lie this far apart at least. The end of each half is for words between the two ranks of
 * a pair, 8 bytes each. */
enum { SPACING = 64, END_BYTES = 2 * SPACING };
enum pair_word { WORD_ACK = 1, WORD_COUNT = 2 };
/* Room for many small messages in flight. */
static const uint64_t window_bytes = 4 << 20;
static const uint64_t operations_max = 1 << 22, latency_bytes = 8;

/* ---- patterns ---- */

/* Odd: words at different places differ. */
static const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t word_at(uint64_t seed, uint64_t offset)
{
    return seed + offset / sizeof(uint64_t) * step;
}

static uint64_t seed_of(const struct pattern *pattern)
{
    return random_hash(pattern->turn, pattern->rank, 1);
}

void pattern_fill(const struct pattern *pattern, unsigned char *data, uint64_t bytes)
{
    const uint64_t seed = seed_of(pattern);
    uint64_t at = 0;

    for (; at + sizeof seed <= bytes; at += sizeof seed)
        memcpy(data + at, &(uint64_t){word_at(seed, at)}, sizeof seed);
    memcpy(data + at, &(uint64_t){word_at(seed, at)}, bytes - at);
}

int pattern_check(const struct pattern *pattern, uint64_t offset, const unsigned char *data,
                  uint64_t bytes)
{
    const uint64_t seed = seed_of(pattern);

    for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        const uint64_t word = word_at(seed, offset + at), left = bytes - at;
        const size_t count = left < sizeof word ? left : sizeof word;
        if (memcmp(data + at, &word, count) == 0)
            continue;
        size_t wrong = 0;
        while (data[at + wrong] == ((const unsigned char *)&word)[wrong])
            wrong++;
        return fail(EBADMSG,
                    "data from rank %u arrived damaged at byte %llu: the transport, the network "
                    "card or memory is faulty",
                    pattern->rank, (unsigned long long)(offset + at + wrong));
    }
    return 0;
}

/* Small whole numbers: floats add up exactly in any order as long as the sum is below 2^24, which
 * holds for 5000 ranks. */
static float value_at(uint64_t turn, uint64_t index)
{
    return (float)((uint32_t)((index + turn * 31) * UINT64_C(2654435761) >> 16) & 63);
}

static float share_of(uint32_t rank)
{
    return (float)(rank % 1024 + 1);
}

void pattern_fill_floats(const struct pattern *pattern, unsigned char *data, uint64_t bytes)
{
    const float share = share_of(pattern->rank);

    assert(bytes % sizeof share == 0);
    for (uint64_t i = 0; i < bytes / sizeof share; i++)
        memcpy(data + i * sizeof share, &(float){value_at(pattern->turn, i) + share}, sizeof share);
}

int pattern_check_sum(uint64_t turn, uint32_t ranks, uint64_t offset, const unsigned char *data,
                      uint64_t bytes)
{
    float shares = 0, value;

    for (uint32_t rank = 0; rank < ranks; rank++)
        shares += share_of(rank);
    for (uint64_t at = 0; at < bytes; at += sizeof value) {
        const float wanted = (float)ranks * value_at(turn, (offset + at) / sizeof value) + shares;
        memcpy(&value, data + at, sizeof value);
        if (!(value >= wanted && value <= wanted)) /* nor NaN */
            return fail(EBADMSG,
                        "a sum over all ranks is wrong at byte %llu: %.9g instead of %.9g: the "
                        "transport, a network card or memory is faulty",
                        (unsigned long long)(offset + at), (double)value, (double)wanted);
    }
    return 0;
}

/* ---- what arrived ---- */

struct measure {
    const struct survey_settings *settings;
    struct transport *transport;
    struct ranks *ranks;
    unsigned char *arena;
    uint64_t half_bytes; /* of the arena: sent from the first half, received in the second */
    uint64_t verified, verified_bytes; /* so far, on this rank */
    uint64_t done, total;              /* steps */
    uint64_t turn;                     /* a number of this measurement, the same on all ranks */
};

/* Compare what arrived at a place of the second half with what was sent from `sent_at`, or with the
 * sum over all ranks. */
static int check(struct measure *measure, const struct pattern *pattern, bool is_sum,
                 uint64_t sent_at, uint64_t at, uint64_t bytes)
{
    unsigned char *data = measure->arena + measure->half_bytes + at;
    assert(at + bytes <= measure->half_bytes);
    const int code = transport_copy(measure->transport, true, measure->half_bytes + at, bytes);

    if (++measure->verified == measure->settings->damage)
        data[0] ^= 1;
    measure->verified_bytes += bytes;
    if (code)
        return code;
    return is_sum ? pattern_check_sum(pattern->turn, measure->ranks->place.ranks, at, data, bytes)
                  : pattern_check(pattern, sent_at, data, bytes);
}

/* ---- pairs ---- */

struct pair_turn {
    uint32_t peer;
    bool leads, sends, receives;
    enum pair_kind kind;
    uint64_t bytes, spacing;
    uint32_t window; /* messages before an acknowledgement */
};

/* Return the message from this place in the first half to the same place in the second one. */
static struct transport_message
message_at(const struct measure *measure, const struct pair_turn *turn, uint64_t at, uint64_t bytes)
{
    assert(at + bytes <= measure->half_bytes);
    return (struct transport_message){turn->peer, at, measure->half_bytes + at, bytes};
}

static struct transport_message word_of(const struct measure *measure, const struct pair_turn *turn,
                                        enum pair_word word)
{
    return message_at(measure, turn, measure->half_bytes - (uint64_t)word * SPACING,
                      sizeof(uint64_t));
}

/* Exchange acknowledgements that what was sent has arrived. */
static int acknowledge(struct measure *measure, const struct pair_turn *turn)
{
    const struct transport_message ack = word_of(measure, turn, WORD_ACK);
    struct transport *transport = measure->transport;
    int code = transport_wait(transport);

    if (code == 0 && turn->receives)
        code = transport_start(transport, &ack, true);
    if (code == 0 && turn->sends)
        code = transport_start(transport, &ack, false);
    return code ? code : transport_wait(transport);
}

/* Returns the nanoseconds, or a negative errno. */
static int64_t run_pair(struct measure *measure, const struct pair_turn *turn, uint64_t operations)
{
    struct transport *transport = measure->transport;
    const struct transport_message first = message_at(measure, turn, 0, turn->bytes);
    const bool flows = turn->kind != PAIR_LATENCY && transport->ops->pending;
    const uint64_t start_ns = clock_now_ns();
    int code = 0;

    for (uint64_t i = 0; i < operations && code == 0; i++) {
        if (turn->kind == PAIR_LATENCY) { /* there and back */
            code = transport_start(transport, &first, false);
            if (code == 0 && !turn->leads)
                code = transport_wait(transport);
            if (code == 0)
                code = transport_start(transport, &first, true);
            if (code == 0)
                code = transport_wait(transport);
            continue;
        }
        /* If messages may flow, keep a window of them under way and acknowledge the last ones.
         * Otherwise acknowledge each window, of which all receives are started before any send. */
        for (uint32_t k = 0; k < turn->window && code == 0 && (flows || turn->receives); k++) {
            const struct transport_message message =
                message_at(measure, turn, k * turn->spacing, turn->bytes);
            if (flows)
                code = transport_make_room(transport, turn->window);
            if (code == 0 && turn->receives)
                code = transport_start(transport, &message, false);
            if (code == 0 && flows && turn->sends)
                code = transport_start(transport, &message, true);
        }
        for (uint32_t k = 0; k < turn->window && code == 0 && !flows && turn->sends; k++) {
            const struct transport_message message =
                message_at(measure, turn, k * turn->spacing, turn->bytes);
            code = transport_start(transport, &message, true);
        }
        if (code == 0 && !flows)
            code = acknowledge(measure, turn);
    }
    if (code == 0 && flows)
        code = acknowledge(measure, turn);
    return code ? code : (int64_t)(clock_now_ns() - start_ns);
}

static uint64_t operations_for(const struct measure *measure, int64_t took_ns, uint64_t operations)
{
    const double each_ns = (double)(took_ns > 0 ? took_ns : 1) / (double)operations;
    const double wanted = (double)measure->settings->repeat_ns / each_ns;

    return wanted < 1                        ? 1
           : wanted > (double)operations_max ? operations_max
                                             : (uint64_t)(wanted + 1);
}

/* Wait until the other rank is ready; the leading one tells it how many operations come next. */
static int agree(struct measure *measure, const struct pair_turn *turn, uint64_t *operations)
{
    const struct transport_message word = word_of(measure, turn, WORD_COUNT);
    struct transport *transport = measure->transport;
    int code = transport_start(transport, &word, !turn->leads);

    if (code == 0)
        code = transport_wait(transport);
    if (turn->leads)
        memcpy(measure->arena + word.from, operations, sizeof *operations);
    if (code == 0 && turn->leads)
        code = transport_copy(transport, false, word.from, sizeof *operations);
    if (code == 0)
        code = transport_start(transport, &word, turn->leads);
    if (code == 0)
        code = transport_wait(transport);
    if (code == 0 && !turn->leads)
        code = transport_copy(transport, true, word.to, sizeof *operations);
    if (!turn->leads)
        memcpy(operations, measure->arena + word.to, sizeof *operations);
    return code;
}

/* Both ranks of the pair call it; leads: on one of them, which gets the figures: seconds
 * (PAIR_LATENCY) or bytes/s. */
static int measure_pair(struct measure *measure, uint32_t peer, bool leads, enum pair_kind kind,
                        uint64_t bytes, struct stats_summary *figure)
{
    const uint64_t spacing = (bytes + SPACING - 1) / SPACING * SPACING;
    const uint64_t fitting = (measure->half_bytes - END_BYTES) / spacing;
    const bool both = kind == PAIR_BOTH || kind == PAIR_LATENCY;
    const struct pair_turn turn = {
        .peer = peer,
        .leads = leads,
        .sends = both || (kind == PAIR_FORTH) == leads,
        .receives = both || (kind == PAIR_BACK) == leads,
        .kind = kind,
        .bytes = bytes,
        .spacing = spacing,
        .window = kind == PAIR_LATENCY        ? 1
                  : fitting < TRANSPORT_DEPTH ? (uint32_t)fitting
                                              : TRANSPORT_DEPTH,
    };
    double *values = memory_array(measure->settings->repeats, sizeof *values);
    uint64_t operations = 1;
    int code = values ? 0 : -ENOMEM;

    assert(turn.window > 0 && turn.window * spacing <= measure->half_bytes - END_BYTES);
    /* Twice: the first operation may connect, and the second round shows what a warm one takes. */
    for (int i = 0; i < 2 && code == 0; i++) {
        code = agree(measure, &turn, &operations);
        const int64_t took_ns = code ? 0 : run_pair(measure, &turn, operations);
        if (took_ns < 0)
            code = (int)took_ns;
        operations = operations_for(measure, took_ns, operations);
    }
    for (uint32_t i = 0; i < measure->settings->repeats && code == 0; i++) {
        const uint64_t number = random_hash(measure->turn, kind, i);
        const struct pattern mine = {measure->ranks->place.rank, number};
        const struct pattern theirs = {peer, number};
        if (measure->settings->verify && turn.sends) {
            pattern_fill(&mine, measure->arena, turn.window * spacing);
            code = transport_copy(measure->transport, false, 0, turn.window * spacing);
        }
        if (code == 0)
            code = agree(measure, &turn, &operations);
        const int64_t took_ns = code ? 0 : run_pair(measure, &turn, operations);
        if (took_ns < 0)
            code = (int)took_ns;
        for (uint32_t k = 0;
             measure->settings->verify && turn.receives && k < turn.window && code == 0; k++)
            code = check(measure, &theirs, false, k * spacing, k * spacing, bytes);
        const double seconds = (double)took_ns * 1e-9;
        const double moved = (double)bytes * turn.window * (kind == PAIR_BOTH ? 2 : 1);
        values[i] = kind == PAIR_LATENCY ? seconds / (double)operations / 2
                                         : moved * (double)operations / seconds;
    }
    if (code)
        ranks_call_off(measure->ranks);
    else
        *figure = stats_summarise(values, measure->settings->repeats);
    free(values);
    return code;
}

/* ---- collectives ---- */

/* Ranks start together, unless one has failed, and the slowest counts. Returns its nanoseconds, or
 * a negative errno. */
static int64_t run_collective(struct measure *measure, int code, enum collective kind,
                              uint64_t bytes, uint64_t operations)
{
    struct ranks *ranks = measure->ranks;
    int64_t slowest_ns = 0;

    code = ranks_meet(ranks, code, NULL);
    const uint64_t start_ns = clock_now_ns();
    for (uint64_t i = 0; i < operations && code == 0; i++)
        code = transport_collective(measure->transport, kind, 0, measure->half_bytes, bytes);
    const int64_t took_ns = (int64_t)(clock_now_ns() - start_ns);
    if (code)
        ranks_call_off(ranks);
    int64_t *all = ranks_collect(ranks, &code, &took_ns, sizeof took_ns);
    for (uint32_t i = 0; all && i < ranks->place.ranks; i++)
        slowest_ns = all[i] > slowest_ns ? all[i] : slowest_ns;
    free(all);
    return code ? code : slowest_ns;
}

/* Collective; all ranks get the figure: seconds of one operation on the slowest rank. bytes: a
 * multiple of 8 for each rank. */
static int measure_collective(struct measure *measure, enum collective kind, uint64_t bytes,
                              struct stats_summary *seconds)
{
    struct ranks *ranks = measure->ranks;
    const uint64_t each = bytes / ranks->place.ranks, own_at = ranks->place.rank * each;
    const bool is_sum = kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER;
    double *values = memory_array(measure->settings->repeats, sizeof *values);
    uint64_t operations = 1;
    int code = values ? 0 : -ENOMEM;

    for (int i = 0; i < 2 && (i == 0 || code == 0); i++) {
        const int64_t took_ns = run_collective(measure, code, kind, bytes, operations);
        code = took_ns < 0 ? (int)took_ns : 0;
        operations = operations_for(measure, took_ns, operations);
    }
    for (uint32_t i = 0; i < measure->settings->repeats && code == 0; i++) {
        struct pattern pattern = {ranks->place.rank, random_hash(measure->turn, kind, i)};
        if (measure->settings->verify) {
            (is_sum ? pattern_fill_floats : pattern_fill)(&pattern, measure->arena, bytes);
            code = transport_copy(measure->transport, false, 0, bytes);
        }
        const int64_t took_ns = run_collective(measure, code, kind, bytes, operations);
        code = took_ns < 0 ? (int)took_ns : 0;
        values[i] = (double)took_ns * 1e-9 / (double)operations;
        if (code || !measure->settings->verify)
            continue;
        if (kind == COLLECTIVE_ALL_REDUCE)
            code = check(measure, &pattern, true, 0, 0, bytes);
        else if (kind == COLLECTIVE_REDUCE_SCATTER)
            code = check(measure, &pattern, true, own_at, own_at, each);
        else if (kind == COLLECTIVE_BROADCAST) {
            pattern.rank = 0;
            code = ranks->place.rank ? check(measure, &pattern, false, 0, 0, bytes) : 0;
        } else
            for (pattern.rank = 0; pattern.rank < ranks->place.ranks && code == 0; pattern.rank++)
                code = check(measure, &pattern, false,
                             kind == COLLECTIVE_ALL_GATHER ? pattern.rank * each : own_at,
                             pattern.rank * each, each);
        code = ranks_meet(ranks, code, NULL);
    }
    if (code == 0)
        *seconds = stats_summarise(values, measure->settings->repeats);
    free(values);
    return code;
}

/* ---- the survey ---- */

/* Collective: end a step. */
static int end_step(struct measure *measure, int code)
{
    if (code == 0)
        code = stop_check();
    code = ranks_meet(measure->ranks, code, NULL);
    measure->done++;
    measure->turn++;
    if (code == 0 && measure->settings->progress && measure->ranks->place.rank == 0)
        measure->settings->progress(measure->settings->progress_context, measure->done,
                                    measure->total);
    return code;
}

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
static int collect_pairs(struct measure *measure, double *mine)
{
    const uint32_t ranks = measure->ranks->place.ranks;
    const size_t count = (size_t)ranks * ranks;
    int code = 0;
    double *all = ranks_collect(measure->ranks, &code, mine, count * sizeof *mine);

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

int survey_run(const struct survey_settings *settings, struct transport *transport,
               struct ranks *ranks, struct fabric_survey *survey)
{
    const uint32_t count = ranks->place.ranks, rank = ranks->place.rank;
    const size_t links = (size_t)count * count;
    struct measure measure = {
        .settings = settings, .transport = transport, .ranks = ranks, .turn = settings->seed};

    *survey = (struct fabric_survey){.matrix = {
                                         .ranks = count,
                                         .nodes = ranks->place.nodes,
                                         .node_of = memory_array(count, sizeof(uint32_t)),
                                         .bytes_per_s = memory_array(links, sizeof(double)),
                                         .latency_s = memory_array(links, sizeof(double)),
                                     }};
    const struct matrix *matrix = &survey->matrix;
    uint64_t most = collective_bytes(settings->to_bytes, count);
    most = most < settings->to_bytes ? settings->to_bytes : most;
    if (settings->pairs != SURVEY_PAIRS_NONE && settings->pair_bytes > most)
        most = settings->pair_bytes;
    most = most > window_bytes ? most : window_bytes;
    measure.half_bytes = (most + SPACING - 1) / SPACING * SPACING + END_BYTES;
    const struct transport_config config = {.ranks = ranks,
                                            .bytes = 2 * measure.half_bytes,
                                            .arena = measure.arena =
                                                memory_pages(2 * measure.half_bytes)};
    int code =
        matrix->node_of && matrix->bytes_per_s && matrix->latency_s && config.arena ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count && code == 0; i++)
        matrix->node_of[i] = ranks->peers[i].node;
    for (size_t i = 0; i < links && code == 0; i++)
        matrix->bytes_per_s[i] = matrix->latency_s[i] = NAN;
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
    measure.total = (settings->has_sizes ? survey->size_count : 0) +
                    (settings->has_collectives ? survey->size_count * COLLECTIVES : 0) +
                    (settings->pairs == SURVEY_PAIRS_NONE ? 0
                     : survey->is_alone                   ? count * (count - 1) / 2
                                                          : survey_rounds(count));
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = transport_open(transport, &config);
    const bool is_open = code == 0;
    if (is_open && settings->progress && rank == 0)
        settings->progress(settings->progress_context, 0, measure.total);
    for (uint32_t i = 0; settings->has_sizes && i < survey->size_count && code == 0; i++) {
        struct survey_size *size = &survey->sizes[i];
        for (int kind = 0; kind < PAIR_KINDS && code == 0; kind++)
            if (rank == 0 || rank == survey->other)
                code = measure_pair(&measure, rank == 0 ? survey->other : 0, rank == 0,
                                    (enum pair_kind)kind, size->bytes, &size->pair[kind]);
        code = end_step(&measure, code);
    }
    survey->has_sizes = settings->has_sizes && code == 0;
    const uint32_t rounds = settings->pairs == SURVEY_PAIRS_NONE ? 0 : survey_rounds(count);
    for (uint32_t round = 0; round < rounds && code == 0; round++) {
        const uint32_t partner = survey_partner(count, round, rank);
        const uint32_t mine = rank < partner ? rank : partner;
        /* All pairs of the round, or one after the other, by their lower ranks. */
        for (uint32_t lower = 0; lower < (survey->is_alone ? count : 1) && code == 0; lower++) {
            if (survey->is_alone && survey_partner(count, round, lower) <= lower)
                continue;
            const bool leads = rank < partner;
            const bool measures = partner != rank && (!survey->is_alone || mine == lower);
            for (int kind = PAIR_LATENCY; kind <= PAIR_BACK && measures && code == 0; kind++) {
                const size_t forth = (size_t)rank * count + partner;
                const size_t back = (size_t)partner * count + rank;
                struct stats_summary figure = {0};
                code = measure_pair(&measure, partner, leads, (enum pair_kind)kind,
                                    kind == PAIR_LATENCY ? latency_bytes : settings->pair_bytes,
                                    &figure);
                if (leads && kind == PAIR_LATENCY)
                    matrix->latency_s[forth] = matrix->latency_s[back] = figure.median;
                else if (leads)
                    matrix->bytes_per_s[kind == PAIR_FORTH ? forth : back] = figure.median;
            }
            code = end_step(&measure, code);
        }
    }
    if (code == 0 && rounds)
        code = collect_pairs(&measure, matrix->bytes_per_s);
    if (code == 0 && rounds)
        code = collect_pairs(&measure, matrix->latency_s);
    survey->has_pairs = rounds && code == 0;
    for (uint32_t i = 0;
         i < survey->size_count * COLLECTIVES && settings->has_collectives && code == 0; i++) {
        struct survey_collective *row = &survey->collectives[i / COLLECTIVES];
        const enum collective kind = (enum collective)(i % COLLECTIVES);
        code = measure_collective(&measure, kind, row->bytes, &row->seconds[kind]);
        code = end_step(&measure, code);
    }
    survey->has_collectives = settings->has_collectives && code == 0;
    double verified = (double)measure.verified_bytes;
    if (code == 0)
        code = ranks_sum(ranks, &verified, 1);
    survey->verified_bytes = (uint64_t)verified;
    if (is_open)
        transport_describe(transport, survey->transport);
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

/* ---- gradients ---- */

enum { FORWARD_SHARE = 3, /* the backward pass takes twice as long */ NAP_NS = 50000 };

int rhythm_add(struct rhythm *rhythm, uint64_t bytes, uint32_t ranks)
{
    const uint64_t unit = sizeof(float) * (uint64_t)ranks;
    const uint64_t whole = bytes < unit ? unit : bytes / unit * unit;

    assert(ranks > 0);
    if (rhythm->count == RHYTHM_BUCKETS)
        return fail(EINVAL, "more than %d buckets of gradients", RHYTHM_BUCKETS);
    rhythm->buckets[rhythm->count++] = whole;
    rhythm->bytes += whole;
    return 0;
}

int rhythm_run(struct rhythm *rhythm, bool (*ended)(void *context), void *context,
               struct rhythm_figures *figures)
{
    struct transport *transport = rhythm->transport;
    struct ranks *ranks = transport->config.ranks;
    unsigned char *arena = transport->config.arena;
    const struct pattern mine = {ranks->place.rank, ++rhythm->turn};
    double ready = 0;

    *figures = (struct rhythm_figures){0};
    assert(transport->config.bytes >= 2 * rhythm->bytes);
    pattern_fill_floats(&mine, arena, rhythm->bytes);
    int code = ranks_meet(ranks, transport_copy(transport, false, 0, rhythm->bytes), NULL);
    while (code == 0 && ready < ranks->place.ranks) {
        const uint64_t start_ns = clock_now_ns(), forward_ns = rhythm->step_ns / FORWARD_SHARE;
        const uint64_t backward_ns = rhythm->step_ns - forward_ns;
        uint64_t at = 0;
        for (uint32_t i = 0; i < rhythm->count && code == 0; i++) {
            const uint64_t final_ns = start_ns + forward_ns + backward_ns * (i + 1) / rhythm->count;
            uint64_t begin_ns;
            while ((begin_ns = clock_now_ns()) < final_ns && code == 0) {
                /* Emulate computing in short naps, between which heartbeats are sent. */
                const uint64_t left_ns = final_ns - begin_ns;
                const struct timespec nap = {.tv_nsec = left_ns < NAP_NS ? (long)left_ns : NAP_NS};
                if (ranks_called_off(ranks))
                    code = fail(ECANCELED, "another rank failed");
                else
                    nanosleep(&nap, NULL);
            }
            if (code == 0)
                code = transport_collective(transport, COLLECTIVE_ALL_REDUCE, at,
                                            rhythm->bytes + at, rhythm->buckets[i]);
            figures->busy_s += (double)(clock_now_ns() - begin_ns) * 1e-9;
            at += rhythm->buckets[i];
        }
        const uint64_t took_ns = clock_now_ns() - start_ns;
        figures->time_s += (double)took_ns * 1e-9;
        figures->late_s += (double)(took_ns - rhythm->step_ns) * 1e-9;
        figures->steps++;
        if (code)
            ranks_call_off(ranks);
        code = ranks_meet(ranks, code, NULL);
        ready = ended(context);
        if (code == 0)
            code = ranks_sum(ranks, &ready, 1);
    }
    if (code)
        return code;
    code = transport_copy(transport, true, rhythm->bytes, rhythm->bytes);
    if (rhythm->turn == rhythm->damage)
        arena[rhythm->bytes] ^= 1;
    if (code == 0)
        code = pattern_check_sum(rhythm->turn, ranks->place.ranks, 0, arena + rhythm->bytes,
                                 rhythm->bytes);
    struct rhythm_figures *all = ranks_collect(ranks, &code, figures, sizeof *figures);
    for (uint32_t i = 0; all && i < ranks->place.ranks; i++)
        if (all[i].time_s > figures->time_s)
            *figures = all[i];
    free(all);
    return code;
}

/* ---- what stands out ---- */

static const double share_of_slow = 0.75, share_of_one = 0.5, deviations = 5, mad_scale = 1.4826;

/* Among fewer values a single slow one determines their spread. */
enum { SPREAD_LEAST = 5 };

static double median(double *values, size_t count)
{
    stats_sort(values, count);
    return count == 0 ? NAN : (values[(count - 1) / 2] + values[count / 2]) / 2;
}

struct usual {
    double median, floor; /* below the floor a value is slow */
};

/* Sorts values. */
static struct usual usual_of(double *values, size_t count)
{
    struct usual usual = {.median = median(values, count)};

    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - usual.median);
    usual.floor = fmin(share_of_slow * usual.median,
                       usual.median - deviations * mad_scale * median(values, count));
    if (count < SPREAD_LEAST)
        usual.floor = share_of_one * usual.median;
    return usual;
}

/* Return the node of a rank. */
static uint32_t node_of(const struct matrix *matrix, uint32_t rank)
{
    assert(rank < matrix->ranks);
    return matrix->nodes > 1 ? matrix->node_of[rank] : rank;
}

static uint32_t node_count(const struct matrix *matrix)
{
    return matrix->nodes > 1 ? matrix->nodes : matrix->ranks;
}

struct judge {
    const struct matrix *matrix;
    struct suspect *suspects;
    int count, most;
    double *values;                    /* room for every link */
    bool *slow_sender, *slow_receiver; /* nodes */
};

static void accuse(struct judge *judge, struct suspect suspect)
{
    if (judge->count < judge->most)
        judge->suspects[judge->count++] = suspect;
}

/* Is this link of the kind, and measured? */
static bool is_link(const struct matrix *matrix, size_t at, bool is_within)
{
    const uint32_t from = (uint32_t)(at / matrix->ranks), to = (uint32_t)(at % matrix->ranks);

    return from != to && isfinite(matrix->bytes_per_s[at]) &&
           (node_of(matrix, from) == node_of(matrix, to)) == is_within;
}

static void judge_nodes(struct judge *judge, bool is_sending)
{
    const struct matrix *matrix = judge->matrix;
    const uint32_t nodes = node_count(matrix), ranks = matrix->ranks;
    double *best = judge->values, *sorted = best + nodes;
    size_t count = 0;

    /* The fastest link of each node, out or in; NAN if none was measured. */
    for (uint32_t i = 0; i < nodes; i++)
        best[i] = NAN;
    for (size_t i = 0; i < (size_t)ranks * ranks; i++) {
        const uint32_t node = node_of(matrix, (uint32_t)(is_sending ? i / ranks : i % ranks));
        if (is_link(matrix, i, false))
            best[node] = fmax(best[node], matrix->bytes_per_s[i]);
    }
    for (uint32_t i = 0; i < nodes; i++)
        if (isfinite(best[i]))
            sorted[count++] = best[i];
    if (count < 3)
        return;
    const struct usual usual = usual_of(sorted, count);
    for (uint32_t i = 0; i < nodes; i++)
        if (best[i] < usual.floor) {
            (is_sending ? judge->slow_sender : judge->slow_receiver)[i] = true;
            accuse(judge, (struct suspect){is_sending ? SUSPECT_SENDER : SUSPECT_RECEIVER, i, i,
                                           best[i], usual.median});
        }
}

static bool is_explained(const struct judge *judge, uint32_t from, uint32_t to)
{
    return judge->slow_sender[node_of(judge->matrix, from)] ||
           judge->slow_receiver[node_of(judge->matrix, to)];
}

static void judge_links(struct judge *judge, bool is_within)
{
    const struct matrix *matrix = judge->matrix;
    const size_t links = (size_t)matrix->ranks * matrix->ranks;
    struct usual usual = {0};
    size_t count = 0;

    for (int round = 0; round < 2; round++) { /* find what is usual, then what is not */
        for (size_t i = 0; i < links; i++) {
            const uint32_t from = (uint32_t)(i / matrix->ranks), to = (uint32_t)(i % matrix->ranks);
            const double rate = matrix->bytes_per_s[i];
            if (!is_link(matrix, i, is_within) || is_explained(judge, from, to))
                continue;
            if (round == 0)
                judge->values[count++] = rate;
            else if (rate < usual.floor)
                accuse(judge, (struct suspect){SUSPECT_LINK, from, to, rate, usual.median});
        }
        if (count < 3)
            return;
        if (round == 0)
            usual = usual_of(judge->values, count);
    }
}

/* The slower direction over the faster one; NAN unless both were measured. */
static double evenness(const struct matrix *matrix, uint32_t a, uint32_t b)
{
    const double forth = matrix->bytes_per_s[(size_t)a * matrix->ranks + b];
    const double back = matrix->bytes_per_s[(size_t)b * matrix->ranks + a];

    return isfinite(forth) && isfinite(back) ? fmin(forth, back) / fmax(forth, back) : NAN;
}

static void judge_asymmetry(struct judge *judge)
{
    const struct matrix *matrix = judge->matrix;
    size_t count = 0;

    for (uint32_t a = 0; a < matrix->ranks; a++)
        for (uint32_t b = a + 1; b < matrix->ranks; b++)
            if (isfinite(evenness(matrix, a, b)))
                judge->values[count++] = evenness(matrix, a, b);
    const struct usual usual = usual_of(judge->values, count);
    /* With one pair there is nothing to compare with. */
    const double floor = count < 3 ? share_of_one : usual.floor;
    for (uint32_t a = 0; a < matrix->ranks; a++)
        for (uint32_t b = a + 1; b < matrix->ranks; b++) {
            const double forth = matrix->bytes_per_s[(size_t)a * matrix->ranks + b];
            const double back = matrix->bytes_per_s[(size_t)b * matrix->ranks + a];
            if (evenness(matrix, a, b) < fmin(share_of_slow, floor) && !is_explained(judge, a, b) &&
                !is_explained(judge, b, a))
                accuse(judge, (struct suspect){SUSPECT_ASYMMETRY, forth < back ? a : b,
                                               forth < back ? b : a, fmin(forth, back),
                                               fmax(forth, back)});
        }
}

int matrix_judge(const struct matrix *matrix, struct suspect *suspects, int most)
{
    const size_t links = (size_t)matrix->ranks * matrix->ranks, nodes = node_count(matrix);
    struct judge judge = {.matrix = matrix, .suspects = suspects, .most = most};
    int code = -ENOMEM;

    judge.values = memory_array(links + 2 * nodes, sizeof *judge.values);
    judge.slow_sender = memory_array(nodes, sizeof *judge.slow_sender);
    judge.slow_receiver = memory_array(nodes, sizeof *judge.slow_receiver);
    if (judge.values && judge.slow_sender && judge.slow_receiver) {
        judge_nodes(&judge, true);
        judge_nodes(&judge, false);
        judge_links(&judge, false);
        judge_links(&judge, true);
        judge_asymmetry(&judge);
        code = judge.count;
    }
    free(judge.values);
    free(judge.slow_sender);
    free(judge.slow_receiver);
    return code;
}

int matrix_median(const struct matrix *matrix, const double *values, bool is_within, double *middle)
{
    const size_t links = (size_t)matrix->ranks * matrix->ranks;
    double *found = memory_array(links, sizeof *found);
    size_t count = 0;

    if (!found)
        return -ENOMEM;
    for (size_t i = 0; i < links; i++)
        if (is_link(matrix, i, is_within))
            found[count++] = values[i];
    *middle = median(found, count);
    free(found);
    return 0;
}
