/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/measure.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Messages lie this far apart at least. The end of each half is for words between the two ranks of
 * a pair, 8 bytes each. */
enum { SPACING = 64, END_BYTES = 2 * SPACING };
enum pair_word { WORD_ACK = 1, WORD_COUNT = 2 };
/* Room for many small messages in flight. */
static const uint64_t window_bytes = 4 << 20;
static const uint64_t operations_max = 1 << 22;

uint64_t measure_arena_bytes(uint64_t most)
{
    const uint64_t half = most > window_bytes ? most : window_bytes;

    return 2 * ((half + SPACING - 1) / SPACING * SPACING + END_BYTES);
}

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

static unsigned char *arena_of(const struct measure *measure)
{
    return measure->transport->config.arena;
}

/* Compare what arrived at a place of the second half with what was sent from `sent_at`, or with the
 * sum over all ranks. */
static int check(struct measure *measure, const struct pattern *pattern, bool is_sum,
                 uint64_t sent_at, uint64_t at, uint64_t bytes)
{
    unsigned char *data = arena_of(measure) + measure->half_bytes + at;
    assert(at + bytes <= measure->half_bytes);
    const int code = transport_copy(measure->transport, true, measure->half_bytes + at, bytes);

    if (++measure->verified == measure->damage)
        data[0] ^= 1;
    measure->verified_bytes += bytes;
    if (code)
        return code;
    return is_sum ? pattern_check_sum(pattern->turn, measure->transport->config.ranks->place.ranks,
                                      at, data, bytes)
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

/* Of what lies there in the first half, to the same place of the second. */
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

/* What was sent has arrived. */
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
        /* A window of messages is always under way, and the last ones are acknowledged; or each
         * window is, all of it awaited before any of it is sent. */
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
    const double wanted = (double)measure->repeat_ns / each_ns;

    return wanted < 1                        ? 1
           : wanted > (double)operations_max ? operations_max
                                             : (uint64_t)(wanted + 1);
}

/* The other rank is ready; the leading one says how many operations come next. */
static int agree(struct measure *measure, const struct pair_turn *turn, uint64_t *operations)
{
    const struct transport_message word = word_of(measure, turn, WORD_COUNT);
    struct transport *transport = measure->transport;
    int code = transport_start(transport, &word, !turn->leads);

    if (code == 0)
        code = transport_wait(transport);
    if (turn->leads)
        memcpy(arena_of(measure) + word.from, operations, sizeof *operations);
    if (code == 0 && turn->leads)
        code = transport_copy(transport, false, word.from, sizeof *operations);
    if (code == 0)
        code = transport_start(transport, &word, turn->leads);
    if (code == 0)
        code = transport_wait(transport);
    if (code == 0 && !turn->leads)
        code = transport_copy(transport, true, word.to, sizeof *operations);
    if (!turn->leads)
        memcpy(operations, arena_of(measure) + word.to, sizeof *operations);
    return code;
}

int measure_pair(struct measure *measure, uint32_t peer, bool leads, enum pair_kind kind,
                 uint64_t bytes, uint64_t turn_number, struct stats_summary *figure)
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
    double *values = memory_array(measure->repeats, sizeof *values);
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
    for (uint32_t i = 0; i < measure->repeats && code == 0; i++) {
        const uint64_t number = random_hash(turn_number, kind, i);
        const struct pattern mine = {measure->transport->config.ranks->place.rank, number};
        const struct pattern theirs = {peer, number};
        if (measure->verify && turn.sends) {
            pattern_fill(&mine, arena_of(measure), turn.window * spacing);
            code = transport_copy(measure->transport, false, 0, turn.window * spacing);
        }
        if (code == 0)
            code = agree(measure, &turn, &operations);
        const int64_t took_ns = code ? 0 : run_pair(measure, &turn, operations);
        if (took_ns < 0)
            code = (int)took_ns;
        for (uint32_t k = 0; measure->verify && turn.receives && k < turn.window && code == 0; k++)
            code = check(measure, &theirs, false, k * spacing, k * spacing, bytes);
        const double seconds = (double)took_ns * 1e-9;
        const double moved = (double)bytes * turn.window * (kind == PAIR_BOTH ? 2 : 1);
        values[i] = kind == PAIR_LATENCY ? seconds / (double)operations / 2
                                         : moved * (double)operations / seconds;
    }
    if (code)
        ranks_call_off(measure->transport->config.ranks);
    else
        *figure = stats_summarise(values, measure->repeats);
    free(values);
    return code;
}

/* ---- collectives ---- */

/* Ranks start together, unless one has failed, and the slowest counts. Returns its nanoseconds, or
 * a negative errno. */
static int64_t run_collective(struct measure *measure, int code, enum collective kind,
                              uint64_t bytes, uint64_t operations)
{
    struct ranks *ranks = measure->transport->config.ranks;
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

int measure_collective(struct measure *measure, enum collective kind, uint64_t bytes,
                       uint64_t turn_number, struct stats_summary *seconds)
{
    struct ranks *ranks = measure->transport->config.ranks;
    const uint64_t each = bytes / ranks->place.ranks, own_at = ranks->place.rank * each;
    const bool is_sum = kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER;
    double *values = memory_array(measure->repeats, sizeof *values);
    uint64_t operations = 1;
    int code = values ? 0 : -ENOMEM;

    for (int i = 0; i < 2 && (i == 0 || code == 0); i++) {
        const int64_t took_ns = run_collective(measure, code, kind, bytes, operations);
        code = took_ns < 0 ? (int)took_ns : 0;
        operations = operations_for(measure, took_ns, operations);
    }
    for (uint32_t i = 0; i < measure->repeats && code == 0; i++) {
        struct pattern pattern = {ranks->place.rank, random_hash(turn_number, kind, i)};
        if (measure->verify) {
            (is_sum ? pattern_fill_floats : pattern_fill)(&pattern, arena_of(measure), bytes);
            code = transport_copy(measure->transport, false, 0, bytes);
        }
        const int64_t took_ns = run_collective(measure, code, kind, bytes, operations);
        code = took_ns < 0 ? (int)took_ns : 0;
        values[i] = (double)took_ns * 1e-9 / (double)operations;
        if (code || !measure->verify)
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
        *seconds = stats_summarise(values, measure->repeats);
    free(values);
    return code;
}
