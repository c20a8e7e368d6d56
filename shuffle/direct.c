/* SPDX-License-Identifier: Apache-2.0
 * Shuffle strategies without a buffer of their own: each record is fetched when it is drawn
 * next. */
#include "base/option.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

static uint64_t direct_record(void *state, uint64_t place)
{
    return sequence_at(state, sequence_position(state, place));
}

static int direct_open(void *state, const struct plan_scope *scope,
                       const struct sequence_rules *rules, struct plan_traits *traits)
{
    int code = sequence_open(state, scope, rules, traits);

    ((struct sequence *)state)->record = direct_record;
    traits->front_to_back = code == 0 && sequence_is_front_to_back(state);
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

    return direct_open(state, scope, &rules, traits);
}

static int epoch_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    (void)settings;
    return direct_open(state, scope, &(struct sequence_rules){.unit = SEQUENCE_RECORDS}, traits);
}

/* With an .idx file dmlc-core gives each rank ceil(N / P) records of the list sorted by offset, and
 * permutes that list again each epoch. */
static int mxnet_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    const struct sequence_rules rules = {.unit = SEQUENCE_RECORDS, .cut = SEQUENCE_CUT_CEILING};

    (void)settings;
    return direct_open(state, scope, &rules, traits);
}

#define DIRECT(NAME, OPEN, SUMMARY, ...)                                                       \
    {                                                                                          \
        .plugin = {.name = NAME,                                                               \
                   .summary = SUMMARY,                                                         \
                   .state_size = sizeof(struct sequence),                                      \
                   __VA_ARGS__},                                                               \
        .open = OPEN, .close = sequence_close, .begin = sequence_begin, .next = sequence_next, \
        .draws = sequence_draws, .seek = sequence_seek,                                        \
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
