/* SPDX-License-Identifier: Apache-2.0
 * The orders without a buffer of their own: each record is fetched when it is drawn next. */
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

static int direct_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct direct_state *direct = state;

    return source_next(&direct->source, &direct->cursor, ops, max);
}

static uint64_t direct_draws(void *state)
{
    return ((struct direct_state *)state)->source.draws;
}

static int none_open(void *state, const void *settings, const struct plan_scope *scope,
                     struct plan_traits *traits)
{
    const struct source_rules rules = {.unit = SOURCE_WHOLE};

    (void)settings;
    return source_open(&((struct direct_state *)state)->source, scope, &rules, traits);
}

const struct shuffle_ops shuffle_none = {
    .plugin = {.name = "none",
               .summary = "records as they lie in storage",
               .state_size = sizeof(struct direct_state)},
    .open = none_open,
    .close = direct_close,
    .begin = direct_begin,
    .next = direct_next,
    .draws = direct_draws,
};

static int epoch_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    const struct source_rules rules = {.unit = SOURCE_RECORDS};

    (void)settings;
    return source_open(&((struct direct_state *)state)->source, scope, &rules, traits);
}

const struct shuffle_ops shuffle_epoch = {
    .plugin = {.name = "epoch",
               .summary = "a full permutation of the records each epoch",
               .state_size = sizeof(struct direct_state)},
    .open = epoch_open,
    .close = direct_close,
    .begin = direct_begin,
    .next = direct_next,
    .draws = direct_draws,
};
