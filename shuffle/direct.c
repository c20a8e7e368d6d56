/* SPDX-License-Identifier: Apache-2.0
 * Shuffle strategies without a buffer of their own: each record is fetched when it is drawn
 * next. */
#include "base/option.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

struct direct_state {
    struct sequence sequence;
    struct sequence_cursor cursor;
};

static void direct_close(void *state)
{
    sequence_close(&((struct direct_state *)state)->sequence);
}

static int direct_begin(void *state, uint64_t epoch)
{
    struct direct_state *direct = state;

    direct->cursor = (struct sequence_cursor){0};
    return sequence_begin(&direct->sequence, epoch);
}

static uint64_t direct_record(void *context, uint64_t place)
{
    struct sequence *sequence = &((struct direct_state *)context)->sequence;

    return sequence_at(sequence, sequence_position(sequence, place));
}

static int direct_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct direct_state *direct = state;

    return sequence_next(&direct->cursor, direct->sequence.draws, direct_record, direct, ops, max);
}

static uint64_t direct_draws(void *state)
{
    return ((struct direct_state *)state)->sequence.draws;
}

static int open_with(void *state, const struct plan_scope *scope,
                     const struct sequence_rules *rules, struct plan_traits *traits)
{
    struct sequence *sequence = &((struct direct_state *)state)->sequence;
    int code = sequence_open(sequence, scope, rules, traits);

    traits->front_to_back = code == 0 && sequence_is_front_to_back(sequence);
    return code;
}

struct none_settings {
    bool stride;
};

/* Caffe2's database reader gives rank r of P the records r, r + P, r + 2 P, ... */
static const struct option_spec none_options[] = {
    {.name = "stride",
     .type = OPTION_FLAG,
     .offset = offsetof(struct none_settings, stride),
     .fallback = "no",
     .summary = "partition elastic deals record by record, not batch by batch"},
    {0},
};

static int none_open(void *state, const void *settings, const struct plan_scope *scope,
                     struct plan_traits *traits)
{
    const struct none_settings *chosen = settings;
    const struct sequence_rules rules = {.unit = SEQUENCE_WHOLE, .stride = chosen->stride};

    return open_with(state, scope, &rules, traits);
}

static int epoch_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    (void)settings;
    return open_with(state, scope, &(struct sequence_rules){.unit = SEQUENCE_RECORDS}, traits);
}

/* With an .idx file dmlc-core gives each rank ceil(N / P) records of the list sorted by offset, and
 * permutes that list again each epoch. */
static int mxnet_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    const struct sequence_rules rules = {.unit = SEQUENCE_RECORDS, .cut = SEQUENCE_CUT_CEILING};

    (void)settings;
    return open_with(state, scope, &rules, traits);
}

static void direct_seek(void *state, uint64_t draw)
{
    ((struct direct_state *)state)->cursor = (struct sequence_cursor){.place = draw};
}

#define DIRECT(NAME, OPEN, SUMMARY, ...)                                                 \
    {                                                                                    \
        .plugin = {.name = NAME,                                                         \
                   .summary = SUMMARY,                                                   \
                   .state_size = sizeof(struct direct_state),                            \
                   __VA_ARGS__},                                                         \
        .open = OPEN, .close = direct_close, .begin = direct_begin, .next = direct_next, \
        .draws = direct_draws, .seek = direct_seek,                                      \
    }

const struct shuffle_ops shuffle_none =
    DIRECT("none", none_open, "records in storage order", .options = none_options, .idle = true,
           .settings_size = sizeof(struct none_settings));
const struct shuffle_ops shuffle_epoch =
    DIRECT("epoch", epoch_open, "a full permutation of the records each epoch", .options = NULL);
const struct shuffle_ops shuffle_mxnet =
    DIRECT("mxnet", mxnet_open, "MXNet with .idx: a full permutation of the rank's records",
           .options = NULL);
const struct shuffle_ops shuffle_naive = DIRECT(
    "naive", epoch_open, "MosaicML naive: a full permutation of the records", .options = NULL);
