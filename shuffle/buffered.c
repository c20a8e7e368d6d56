/* SPDX-License-Identifier: Apache-2.0
 * The orders that are a shuffle buffer over a walk in runs. */
#include "base/fail.h"
#include "base/option.h"
#include "shuffle/buffer.h"
#include "shuffle/plugins.h"
#include "shuffle/source.h"

#include <errno.h>

struct buffered_state {
    struct source source;
    struct buffer buffer;
    uint64_t place;
};

/* A buffer belongs to a rank, so what it yields depends on the number of ranks. */
static int buffered_open(struct buffered_state *buffered, const struct plan_scope *scope,
                         const struct source_rules *rules, uint64_t capacity, uint64_t initial,
                         struct plan_traits *traits)
{
    if (scope->partition == PLAN_ELASTIC)
        return fail(EINVAL, "partition elastic needs an order that all ranks share; a shuffle "
                            "buffer belongs to one rank (use epoch, block or py1br)");
    int code = source_open(&buffered->source, scope, rules, traits);
    if (code)
        return code;
    return buffer_open(&buffered->buffer, scope, capacity, initial,
                       source_draws_max(&buffered->source), traits);
}

static void buffered_close(void *state)
{
    struct buffered_state *buffered = state;

    buffer_close(&buffered->buffer);
    source_close(&buffered->source);
}

static int buffered_begin(void *state, uint64_t epoch)
{
    struct buffered_state *buffered = state;
    int code = source_begin(&buffered->source, epoch);

    if (code)
        return code;
    buffered->place = 0;
    buffer_begin(&buffered->buffer,
                 source_seed(&buffered->source.scope, SOURCE_BUFFER, epoch, false),
                 buffered->source.draws);
    return 0;
}

static uint64_t buffered_input(void *context)
{
    struct buffered_state *buffered = context;

    return source_record(&buffered->source, buffered->place++);
}

static int buffered_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct buffered_state *buffered = state;

    return buffer_next(&buffered->buffer, buffered_input, buffered, ops, max);
}

static uint64_t buffered_draws(void *state)
{
    return ((struct buffered_state *)state)->source.draws;
}

struct buffer_settings {
    uint64_t records;
};

static const struct option_spec buffer_options[] = {
    {.name = "records",
     .type = OPTION_COUNT,
     .offset = offsetof(struct buffer_settings, records),
     .fallback = "10000",
     .minimum = 1,
     .maximum = 4e9,
     .summary = "records held in the buffer"},
    {0},
};

static int plain_open(void *state, const void *settings, const struct plan_scope *scope,
                      struct plan_traits *traits)
{
    const struct buffer_settings *chosen = settings;
    const struct source_rules rules = {.unit = SOURCE_WHOLE};

    return buffered_open(state, scope, &rules, chosen->records, chosen->records, traits);
}

const struct shuffle_ops shuffle_buffer = {
    .plugin = {.name = "buffer",
               .summary = "a shuffle buffer over records as they lie in storage",
               .options = buffer_options,
               .settings_size = sizeof(struct buffer_settings),
               .state_size = sizeof(struct buffered_state)},
    .open = plain_open,
    .close = buffered_close,
    .begin = buffered_begin,
    .next = buffered_next,
    .draws = buffered_draws,
};
