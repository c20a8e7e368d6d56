/* SPDX-License-Identifier: Apache-2.0
 * Strategies that take a sequence as it comes: each record is fetched when it is drawn next. */
#include "base/option.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

static uint64_t direct_record(void *state, uint64_t place)
{
    return sequence_at(state, sequence_position(state, place));
}

static int direct_open(const struct shuffle_ops *ops, void *state, const void *settings,
                       const struct plan_scope *scope, struct plan_traits *traits)
{
    struct sequence_rules rules = *ops->rules;

    if (ops->plugin.options)
        rules.stride = ((const struct sequence_rules *)settings)->stride;
    int code = sequence_open(state, scope, &rules, traits);
    ((struct sequence *)state)->record = direct_record;
    return code;
}

/* Caffe2's database reader gives rank r of P the records r, r + P, r + 2 P, ... */
static const struct option_spec none_options[] = {
    {"stride", 0, OPTION_FLAG, offsetof(struct sequence_rules, stride), "no",
     .summary = "partition elastic deals record by record, not batch by batch"},
    {0},
};

static const struct sequence_rules in_order = {.unit = SEQUENCE_WHOLE};
static const struct sequence_rules permuted = {.unit = SEQUENCE_RECORDS};
/* With an .idx file dmlc-core gives each rank ceil(N / P) records of the list sorted by offset, and
 * permutes that list again each epoch. */
static const struct sequence_rules of_index = {.unit = SEQUENCE_RECORDS,
                                               .cut = SEQUENCE_CUT_CEILING};

#define DIRECT(NAME, RULES, SUMMARY, ...)                                                       \
    {                                                                                           \
        .plugin = {.name = NAME,                                                                \
                   .summary = SUMMARY,                                                          \
                   .state_size = sizeof(struct sequence),                                       \
                   __VA_ARGS__},                                                                \
        .rules = &RULES, .open = direct_open, .close = sequence_close, .begin = sequence_begin, \
        .next = sequence_next, .draws = sequence_draws, .seek = sequence_seek,                  \
    }

const struct shuffle_ops shuffle_none =
    DIRECT("none", in_order, "records in storage order", .options = none_options, .idle = true,
           .settings_size = sizeof(struct sequence_rules));
const struct shuffle_ops shuffle_epoch =
    DIRECT("epoch", permuted, "a full permutation of the records each epoch", .options = NULL);
const struct shuffle_ops shuffle_mxnet =
    DIRECT("mxnet", of_index, "MXNet with .idx: a full permutation of the rank's records",
           .options = NULL);
const struct shuffle_ops shuffle_naive =
    DIRECT("naive", permuted, "MosaicML naive: a full permutation of the records", .options = NULL);
