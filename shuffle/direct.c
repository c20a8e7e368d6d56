/* SPDX-License-Identifier: Apache-2.0
 * The orders without a buffer of their own: each record is fetched when it is drawn next. */
#include "base/option.h"
#include "shuffle/plugins.h"
#include "shuffle/source.h"

struct direct_state {
    struct source source;
    struct source_cursor cursor;
};

static void direct_close(void *state)
{
    source_close(&((struct direct_state *)state)->source);
}

static int direct_begin(void *state, uint64_t epoch)
{
    struct direct_state *direct = state;

    direct->cursor = (struct source_cursor){0};
    return source_begin(&direct->source, epoch);
}

static uint64_t direct_record(void *context, uint64_t place)
{
    struct source *source = &((struct direct_state *)context)->source;

    return source_at(source, source_position(source, place));
}

static int direct_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct direct_state *direct = state;

    return source_next(&direct->cursor, direct->source.draws, direct_record, direct, ops, max);
}

static uint64_t direct_draws(void *state)
{
    return ((struct direct_state *)state)->source.draws;
}

static int open_with(void *state, const struct plan_scope *scope, const struct source_rules *rules,
                     struct plan_traits *traits)
{
    return source_open(&((struct direct_state *)state)->source, scope, rules, traits);
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
    const struct source_rules rules = {.unit = SOURCE_WHOLE, .stride = chosen->stride};

    return open_with(state, scope, &rules, traits);
}

static int epoch_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    (void)settings;
    return open_with(state, scope, &(struct source_rules){.unit = SOURCE_RECORDS}, traits);
}

/* With an .idx file dmlc-core gives each rank ceil(N / P) records of the list sorted by offset,
 * and permutes that list anew each epoch. */
static int mxnet_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    const struct source_rules rules = {.unit = SOURCE_RECORDS, .cut = SOURCE_CUT_CEILING};

    (void)settings;
    return open_with(state, scope, &rules, traits);
}

static void direct_seek(void *state, uint64_t draw)
{
    ((struct direct_state *)state)->cursor = (struct source_cursor){.place = draw};
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
    DIRECT("none", none_open, "records as they lie in storage", .options = none_options,
           .settings_size = sizeof(struct none_settings));
const struct shuffle_ops shuffle_epoch =
    DIRECT("epoch", epoch_open, "a full permutation of the records each epoch", .options = NULL);
const struct shuffle_ops shuffle_mxnet =
    DIRECT("mxnet", mxnet_open, "MXNet with .idx: a full permutation of the rank's records",
           .options = NULL);
const struct shuffle_ops shuffle_naive = DIRECT(
    "naive", epoch_open, "MosaicML naive: a full permutation of the records", .options = NULL);
