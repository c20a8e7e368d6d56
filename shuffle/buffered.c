/* SPDX-License-Identifier: Apache-2.0
 * Shuffle strategies that use a shuffle buffer over a walk in runs. */
#include "base/option.h"
#include "shuffle/buffer.h"
#include "shuffle/plugins.h"

struct buffer_settings {
    uint64_t records, initial; /* initial 0: as many */
};

struct buffered_state {
    struct sequence sequence;
    struct buffer buffer;
    uint64_t place;
};

static int buffered_open(const struct shuffle_ops *ops, void *state, const void *settings,
                         const struct plan_scope *scope, struct plan_traits *traits)
{
    struct buffered_state *buffered = state;
    const struct buffer_settings *chosen = settings;
    int code = sequence_open(&buffered->sequence, scope, ops->rules, traits);

    return code ? code
                : buffer_open(&buffered->buffer, &buffered->sequence, chosen->records,
                              chosen->initial ? chosen->initial : chosen->records, traits);
}

static int buffered_begin(void *state, uint64_t epoch)
{
    struct buffered_state *buffered = state;

    sequence_begin(state, epoch);
    buffered->place = 0;
    buffer_begin(&buffered->buffer, &buffered->sequence, epoch);
    return 0;
}

static uint64_t buffered_input(void *context)
{
    struct buffered_state *buffered = context;

    return sequence_at(&buffered->sequence, buffered->place++);
}

static int buffered_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct buffered_state *buffered = state;

    return buffer_next(&buffered->buffer, buffered_input, buffered, ops, max);
}

#define BUFFERED(NAME, RULES, OPTIONS, SUMMARY)                                                   \
    {                                                                                             \
        .plugin = {.name = NAME,                                                                  \
                   .summary = SUMMARY,                                                            \
                   .options = OPTIONS,                                                            \
                   .settings_size = sizeof(struct buffer_settings),                               \
                   .state_size = sizeof(struct buffered_state)},                                  \
        .rules = &RULES, .open = buffered_open, .close = sequence_close, .begin = buffered_begin, \
        .next = buffered_next, .draws = sequence_draws,                                           \
    }

#define BUFFER_ROW(NAME, FIELD, DEFAULT, SUMMARY)                                              \
    {                                                                                          \
        .name = NAME, .type = OPTION_COUNT, .offset = offsetof(struct buffer_settings, FIELD), \
        .fallback = DEFAULT, .minimum = 1, .maximum = 4e9, .summary = SUMMARY                  \
    }

static const struct option_spec buffer_options[] = {
    BUFFER_ROW("records", records, "10000", "records held in the buffer"),
    {0},
};

static const struct sequence_rules in_order = {.unit = SEQUENCE_WHOLE, .is_buffered = true};
static const struct sequence_rules shards = {
    .unit = SEQUENCE_SHARDS, .permute = true, .is_buffered = true};

const struct shuffle_ops shuffle_buffer =
    BUFFERED("buffer", in_order, buffer_options, "a shuffle buffer over records in storage order");

/* A ring of initial_fill records over the rank's range [s N / S, (s + 1) N / S); the ranges rotate
 * over the ranks each epoch, unless stick_to_shard: partition sticky. */
static const struct option_spec dali_options[] = {
    BUFFER_ROW("initial-fill", records, "1024", "records held in the buffer"),
    {0},
};

const struct shuffle_ops shuffle_dali =
    BUFFERED("dali", in_order, dali_options, "NVIDIA DALI: a shuffle buffer over the rank's range");

static const struct option_spec webdataset_options[] = {
    BUFFER_ROW("buffer", records, "1000", "records held in the buffer"),
    BUFFER_ROW("initial", initial, "100", "records held before the first is used"),
    {0},
};

const struct shuffle_ops shuffle_webdataset =
    BUFFERED("webdataset", shards, webdataset_options,
             "WebDataset: shards in random order through a growing shuffle buffer");
