/* SPDX-License-Identifier: Apache-2.0
 *
 * Shuffle strategies with a shuffle buffer: fill it, then repeatedly draw a random held record and
 * fetch the next one into its place. The next one comes from a walk in runs or, as in tf.data, from
 * some files of the walk in turn.
 *
 * Two parameters: the first draw happens when `initial` records are held; while fewer than
 * `capacity` are held, each draw is followed by two fetches, else by one. tf.data and DALI use
 * initial = capacity; WebDataset uses a smaller one, so its buffer grows while it is drawn from. */
#include "base/option.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

#include <assert.h>
#include <errno.h>

struct buffered_settings {
    uint64_t records, initial;   /* initial 0: as many */
    uint64_t interleave, length; /* of tfdata; records taken from a file in its turn */
    bool files;                  /* of tfdata: shuffled */
};

struct open_file {
    uint64_t position, end; /* in the walk over the shuffled files; if equal, no file is open */
};

struct buffered_state {
    struct sequence sequence;
    uint32_t capacity, initial;
    uint32_t *slots; /* a permutation: the first `held` names hold records, the others are free */
    uint32_t held;
    uint32_t due;  /* fetches needed before the next draw */
    uint64_t left; /* inputs left */
    struct random random;
    uint64_t position;         /* in the walk: of the next input, or of the next file to open */
    struct open_file *files;   /* that are interleaved; NULL: the walk is taken as it comes */
    uint32_t file_count, turn; /* turn: the file to read from next */
    uint64_t length, taken;    /* consecutive records per file and turn */
};

static int buffered_open(const struct shuffle_ops *ops, void *state, const void *settings,
                         const struct plan_scope *scope, struct plan_traits *traits)
{
    struct buffered_state *buffered = state;
    const struct buffered_settings *chosen = settings;
    struct sequence_rules rules = *ops->rules;

    rules.permute |= chosen->files;
    int code = sequence_open(&buffered->sequence, scope, &rules, traits);
    if (code)
        return code;
    if (chosen->interleave) {
        const uint64_t files = buffered->sequence.unit_count;
        buffered->file_count = (uint32_t)(chosen->interleave < files ? chosen->interleave : files);
        buffered->length = chosen->length;
        buffered->files = sequence_table(&buffered->sequence, traits, buffered->file_count,
                                         sizeof *buffered->files, "the files it interleaves");
        if (!buffered->files)
            return -ENOMEM;
    }
    /* A larger buffer would never fill. */
    const uint64_t inputs = sequence_draws_max(&buffered->sequence);
    const uint64_t capacity = chosen->records < inputs ? chosen->records : inputs;
    assert(capacity > 0 && capacity <= UINT32_MAX);
    buffered->capacity = buffered->initial = (uint32_t)capacity;
    if (chosen->initial && chosen->initial < capacity)
        buffered->initial = (uint32_t)chosen->initial;
    traits->slots = capacity;
    buffered->slots = sequence_table(&buffered->sequence, traits, capacity, sizeof *buffered->slots,
                                     "the slots of its buffer");
    return buffered->slots ? 0 : -ENOMEM;
}

static int buffered_begin(void *state, uint64_t epoch)
{
    struct buffered_state *buffered = state;
    const struct plan_scope *scope = &buffered->sequence.scope;

    sequence_begin(state, epoch);
    buffered->position = buffered->taken = 0;
    buffered->turn = 0;
    for (uint32_t i = 0; i < buffered->file_count; i++)
        buffered->files[i] = (struct open_file){0};
    for (uint32_t i = 0; i < buffered->capacity; i++)
        buffered->slots[i] = i;
    buffered->held = 0;
    buffered->due = buffered->initial;
    buffered->left = buffered->sequence.draws;
    buffered->random = random_start(sequence_seed(scope, SEQUENCE_BUFFER, epoch, false));
    return 0;
}

/* Return the next record of the files in turn. A file that ends is replaced by the next one at its
 * next turn. */
static uint64_t next_interleaved(struct buffered_state *buffered)
{
    assert(buffered->turn < buffered->file_count);
    for (;;) {
        struct open_file *file = &buffered->files[buffered->turn];
        if (file->position == file->end && buffered->taken == 0 &&
            buffered->position < buffered->sequence.length) {
            file->position = buffered->position;
            uint64_t begin;
            sequence_bounds(&buffered->sequence, file->position, &begin, &file->end);
            buffered->position = file->end;
        }
        if (file->position < file->end && buffered->taken < buffered->length) {
            buffered->taken++;
            return sequence_at(&buffered->sequence, file->position++);
        }
        buffered->taken = 0;
        buffered->turn = buffered->turn + 1 < buffered->file_count ? buffered->turn + 1 : 0;
    }
}

static int buffered_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct buffered_state *buffered = state;
    uint32_t *slots = buffered->slots;
    const bool interleaves = buffered->files;
    uint32_t count = 0;

    while (count < max && (buffered->left || buffered->held)) {
        if (buffered->due && buffered->left) {
            const uint64_t record = interleaves
                                        ? next_interleaved(buffered)
                                        : sequence_at(&buffered->sequence, buffered->position++);
            ops[count++] = (struct plan_op){
                .kind = PLAN_FETCH, .record = record, .slot = slots[buffered->held++]};
            buffered->due--;
            buffered->left--;
            continue;
        }
        assert(buffered->held > 0 && buffered->held <= buffered->capacity);
        uint32_t pick = (uint32_t)random_below(&buffered->random, buffered->held);
        uint32_t slot = slots[pick];
        slots[pick] = slots[--buffered->held];
        slots[buffered->held] = slot;
        ops[count++] = (struct plan_op){.kind = PLAN_DRAW, .slot = slot};
        buffered->due = buffered->capacity - buffered->held >= 2 ? 2 : 1;
    }
    return (int)count;
}

#define BUFFERED(NAME, RULES, INTERLEAVES, OPTIONS, SUMMARY)                     \
    {                                                                            \
        .plugin = {.name = NAME,                                                 \
                   .summary = SUMMARY,                                           \
                   .options = OPTIONS,                                           \
                   .settings_size = sizeof(struct buffered_settings),            \
                   .state_size = sizeof(struct buffered_state)},                 \
        .interleaves = INTERLEAVES, .rules = &RULES, .open = buffered_open,      \
        .close = sequence_close, .begin = buffered_begin, .next = buffered_next, \
        .draws = sequence_draws,                                                 \
    }

#define COUNT_ROW(NAME, FIELD, DEFAULT, SUMMARY)                                                 \
    {                                                                                            \
        .name = NAME, .type = OPTION_COUNT, .offset = offsetof(struct buffered_settings, FIELD), \
        .fallback = DEFAULT, .minimum = 1, .maximum = 4e9, .summary = SUMMARY                    \
    }

static const struct sequence_rules in_order = {.unit = SEQUENCE_WHOLE, .is_buffered = true};
static const struct sequence_rules shards = {.unit = SEQUENCE_SHARDS, .is_buffered = true};
static const struct sequence_rules shuffled_shards = {
    .unit = SEQUENCE_SHARDS, .permute = true, .is_buffered = true};

static const struct option_spec buffer_options[] = {
    COUNT_ROW("records", records, "10000", "records held in the buffer"),
    {0},
};

const struct shuffle_ops shuffle_buffer = BUFFERED(
    "buffer", in_order, false, buffer_options, "a shuffle buffer over records in storage order");

/* A ring of initial_fill records over the rank's range [s N / S, (s + 1) N / S); the ranges rotate
 * over the ranks each epoch, unless stick_to_shard: partition sticky. */
static const struct option_spec dali_options[] = {
    COUNT_ROW("initial-fill", records, "1024", "records held in the buffer"),
    {0},
};

const struct shuffle_ops shuffle_dali = BUFFERED(
    "dali", in_order, false, dali_options, "NVIDIA DALI: a shuffle buffer over the rank's range");

static const struct option_spec webdataset_options[] = {
    COUNT_ROW("buffer", records, "1000", "records held in the buffer"),
    COUNT_ROW("initial", initial, "100", "records held before the first is used"),
    {0},
};

const struct shuffle_ops shuffle_webdataset =
    BUFFERED("webdataset", shuffled_shards, false, webdataset_options,
             "WebDataset: shards in random order through a growing shuffle buffer");

/* tf.data in its most common form: shuffle the list of files, interleave a few of them, use a
 * shuffle buffer. */
static const struct option_spec tfdata_options[] = {
    COUNT_ROW("buffer", records, "10000", "records held in the shuffle buffer"),
    COUNT_ROW("interleave", interleave, "10", "files read in turn (cycle_length)"),
    COUNT_ROW("length", length, "1", "records taken from a file in its turn (block_length)"),
    {"files", 0, OPTION_FLAG, offsetof(struct buffered_settings, files), "yes",
     .summary = "shuffle the list of files each epoch"},
    {0},
};

const struct shuffle_ops shuffle_tfdata =
    BUFFERED("tfdata", shards, true, tfdata_options,
             "tf.data: shuffled files, interleaved, through a shuffle buffer");
