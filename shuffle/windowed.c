/* SPDX-License-Identifier: Apache-2.0
 * Shuffle strategies that read a window of adjacent runs whole and then draw it in random order.
 *
 * A window is the positions [begin, end). Draw begin + j gives the record at begin + p(j), where p
 * is a bijection derived from the seed and begin; so fetching in storage order needs the inverse of
 * p and no table. If ranks share a window (elastic), each fetches only what it draws. */
#include "base/fail.h"
#include "base/option.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

#include <assert.h>
#include <errno.h>

struct windowed_state {
    struct sequence sequence;
    bool inside;       /* shuffle inside the window */
    uint64_t capacity; /* whole runs are added while they fit; the first is always added */
    uint64_t begin, end;
    struct permutation permutation;
    uint64_t fetched;     /* positions of the window handled so far */
    uint64_t base, place; /* places of the window's first draw and of the next draw */
};

struct window_settings {
    uint64_t bytes;
    bool inside;  /* of block: shuffle inside the window too */
    bool permute; /* of mxnet-chunk */
    double share;
};

static int windowed_open(const struct shuffle_ops *ops, void *state, const void *settings,
                         const struct plan_scope *scope, struct plan_traits *traits)
{
    struct windowed_state *windowed = state;
    const struct window_settings *chosen = settings;
    struct sequence_rules rules = *ops->rules;

    rules.chunk_bytes = chosen->bytes;
    rules.permute |= chosen->permute;
    int code = sequence_open(&windowed->sequence, scope, &rules, traits);
    if (code)
        return code;
    windowed->inside = chosen->inside || ops != &shuffle_block;
    windowed->capacity =
        (uint64_t)(chosen->share * (double)sequence_length_max(&windowed->sequence));
    const uint64_t most = windowed->sequence.unit_most;
    uint64_t records = windowed->capacity > most ? windowed->capacity : most;
    if (scope->partition == PLAN_ELASTIC) /* a rank's rows of the batches that overlap a window */
        records = (records / ((uint64_t)scope->batch_size * scope->ranks) + 2) * scope->batch_size;
    const uint64_t draws = sequence_draws_max(&windowed->sequence);
    traits->slots = records < draws ? records : draws;
    if (traits->slots > UINT32_MAX)
        return fail(EINVAL, "a window of %llu records is too large: at most 2^32 - 1",
                    (unsigned long long)traits->slots);
    return 0;
}

static void start_window(struct windowed_state *windowed, uint64_t begin)
{
    const uint64_t length = windowed->sequence.length;
    uint64_t low, end;

    windowed->begin = begin;
    sequence_bounds(&windowed->sequence, begin, &low, &windowed->end);
    while (windowed->end < length) {
        sequence_bounds(&windowed->sequence, windowed->end, &low, &end);
        if (end - begin > windowed->capacity)
            break;
        windowed->end = end;
    }
    if (windowed->end > length)
        windowed->end = length;
    windowed->permutation =
        permutation_start(random_hash(windowed->sequence.seed, begin, 0), windowed->end - begin);
    assert(windowed->end > begin);
    windowed->fetched = 0;
    windowed->base = windowed->place;
}

static int windowed_begin(void *state, uint64_t epoch)
{
    struct windowed_state *windowed = state;

    sequence_begin(state, epoch);
    windowed->place = 0;
    start_window(windowed, 0);
    return 0;
}

static int windowed_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct windowed_state *windowed = state;
    struct sequence *sequence = &windowed->sequence;
    uint32_t count = 0;

    while (count < max) {
        const uint64_t index = windowed->fetched;
        if (index < windowed->end - windowed->begin) {
            uint64_t place, drawn = index;
            if (windowed->inside)
                drawn = permutation_inverse(&windowed->permutation, index);
            windowed->fetched++;
            if (sequence_place(sequence, windowed->begin + drawn, &place))
                ops[count++] =
                    (struct plan_op){.kind = PLAN_FETCH,
                                     .record = sequence_at(sequence, windowed->begin + index),
                                     .slot = (uint32_t)(place - windowed->base)};
        } else if (windowed->place < sequence->draws &&
                   sequence_position(sequence, windowed->place) < windowed->end) {
            ops[count++] = (struct plan_op){.kind = PLAN_DRAW,
                                            .slot = (uint32_t)(windowed->place - windowed->base)};
            windowed->place++;
        } else if (windowed->end < sequence->length) {
            start_window(windowed, windowed->end);
        } else {
            break;
        }
    }
    return (int)count;
}

#define FIELD(field) offsetof(struct window_settings, field)
#define WINDOWED(NAME, RULES, OPTIONS, SUMMARY)                                                   \
    {                                                                                             \
        .plugin = {.name = NAME,                                                                  \
                   .summary = SUMMARY,                                                            \
                   .options = OPTIONS,                                                            \
                   .settings_size = sizeof(struct window_settings),                               \
                   .state_size = sizeof(struct windowed_state)},                                  \
        .rules = &RULES, .open = windowed_open, .close = sequence_close, .begin = windowed_begin, \
        .next = windowed_next, .draws = sequence_draws,                                           \
    }

static const struct option_spec block_options[] = {
    {"size", 0, OPTION_SIZE, FIELD(bytes), "8MiB", .minimum = 4096, .summary = "bytes of a block"},
    {"inside", 0, OPTION_FLAG, FIELD(inside), "yes",
     .summary = "shuffle the records of a block too"},
    {0},
};

static const struct sequence_rules permuted = {.unit = SEQUENCE_CHUNKS, .permute = true};

const struct shuffle_ops shuffle_block =
    WINDOWED("block", permuted, block_options,
             "blocks in random order, each read whole and shuffled inside");

static const struct option_spec mxnet_chunk_options[] = {
    {"chunk", 0, OPTION_SIZE, FIELD(bytes), "64MiB", .minimum = 4096,
     .summary = "bytes of a chunk"},
    {"permute", 0, OPTION_FLAG, FIELD(permute), "no",
     .summary = "visit the chunks in random order"},
    {0},
};

/* dmlc-core divides the bytes of all files evenly among the ranks. */
static const struct sequence_rules even_bytes = {.unit = SEQUENCE_CHUNKS,
                                                 .cut = SEQUENCE_CUT_BYTES};

const struct shuffle_ops shuffle_mxnet_chunk =
    WINDOWED("mxnet-chunk", even_bytes, mxnet_chunk_options,
             "MXNet without .idx: chunks in storage order, each shuffled inside");

static const struct option_spec corgipile_options[] = {
    {"buffer", 0, OPTION_REAL, FIELD(share), "0.1", .minimum = 1e-9, .maximum = 1,
     .summary = "share of the rank's records that the buffer holds"},
    {"block", 0, OPTION_SIZE, FIELD(bytes), "10MB", .minimum = 4096, .summary = "bytes of a block"},
    {0},
};

const struct shuffle_ops shuffle_corgipile =
    WINDOWED("corgipile", permuted, corgipile_options,
             "CorgiPile: random blocks fill a buffer, which is shuffled and drawn empty");
