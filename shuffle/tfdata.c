/* SPDX-License-Identifier: Apache-2.0
 * tf.data in its most common form: shuffle the list of files, interleave a few of them, use a
 * shuffle buffer. */
#include "base/option.h"
#include "shuffle/buffer.h"
#include "shuffle/plugins.h"
#include "shuffle/sequence.h"

#include <assert.h>
#include <errno.h>

struct tfdata_settings {
    uint64_t buffer, interleave, length;
    bool files;
};

struct open_file {
    uint64_t position, end; /* in the walk over the shuffled files; if equal, no file is open */
};

struct tfdata_state {
    struct sequence sequence;
    struct buffer buffer;
    struct open_file *files;
    uint32_t file_count, turn; /* turn: the file to read from next */
    uint64_t length, taken;    /* consecutive records per file and turn */
    uint64_t opened;           /* position of the next file to open */
};

#define COUNT_ROW(NAME, FIELD, DEFAULT, SUMMARY)                                               \
    {                                                                                          \
        .name = NAME, .type = OPTION_COUNT, .offset = offsetof(struct tfdata_settings, FIELD), \
        .fallback = DEFAULT, .minimum = 1, .maximum = 4e9, .summary = SUMMARY                  \
    }

static const struct option_spec tfdata_options[] = {
    COUNT_ROW("buffer", buffer, "10000", "records held in the shuffle buffer"),
    COUNT_ROW("interleave", interleave, "10", "files read in turn (cycle_length)"),
    COUNT_ROW("length", length, "1", "records taken from a file in its turn (block_length)"),
    {.name = "files",
     .type = OPTION_FLAG,
     .offset = offsetof(struct tfdata_settings, files),
     .fallback = "yes",
     .summary = "shuffle the list of files each epoch"},
    {0},
};

static int tfdata_open(const struct shuffle_ops *ops, void *state, const void *settings,
                       const struct plan_scope *scope, struct plan_traits *traits)
{
    struct tfdata_state *tfdata = state;
    const struct tfdata_settings *chosen = settings;
    struct sequence_rules rules = *ops->rules;

    rules.permute = chosen->files;
    int code = sequence_open(&tfdata->sequence, scope, &rules, traits);
    if (code)
        return code;
    const uint64_t files = tfdata->sequence.unit_count;
    tfdata->file_count = (uint32_t)(chosen->interleave < files ? chosen->interleave : files);
    tfdata->length = chosen->length;
    tfdata->files = sequence_table(&tfdata->sequence, traits, tfdata->file_count,
                                   sizeof *tfdata->files, "the files it interleaves");
    if (!tfdata->files)
        return -ENOMEM;
    return buffer_open(&tfdata->buffer, &tfdata->sequence, chosen->buffer, chosen->buffer, traits);
}

static int tfdata_begin(void *state, uint64_t epoch)
{
    struct tfdata_state *tfdata = state;

    sequence_begin(state, epoch);
    for (uint32_t i = 0; i < tfdata->file_count; i++)
        tfdata->files[i] = (struct open_file){0};
    tfdata->turn = 0;
    tfdata->taken = tfdata->opened = 0;
    buffer_begin(&tfdata->buffer, &tfdata->sequence, epoch);
    return 0;
}

/* A file that ends is replaced by the next one at its next turn. */
static uint64_t tfdata_input(void *context)
{
    struct tfdata_state *tfdata = context;

    assert(tfdata->turn < tfdata->file_count);
    for (;;) {
        struct open_file *file = &tfdata->files[tfdata->turn];
        if (file->position == file->end && tfdata->taken == 0 &&
            tfdata->opened < tfdata->sequence.length) {
            file->position = tfdata->opened;
            uint64_t begin;
            sequence_bounds(&tfdata->sequence, file->position, &begin, &file->end);
            tfdata->opened = file->end;
        }
        if (file->position < file->end && tfdata->taken < tfdata->length) {
            tfdata->taken++;
            return sequence_at(&tfdata->sequence, file->position++);
        }
        tfdata->taken = 0;
        tfdata->turn = tfdata->turn + 1 < tfdata->file_count ? tfdata->turn + 1 : 0;
    }
}

static int tfdata_next(void *state, struct plan_op *ops, uint32_t max)
{
    struct tfdata_state *tfdata = state;

    return buffer_next(&tfdata->buffer, tfdata_input, tfdata, ops, max);
}

const struct shuffle_ops shuffle_tfdata = {
    .interleaves = true,
    .rules = &(const struct sequence_rules){.unit = SEQUENCE_SHARDS, .is_buffered = true},
    .plugin = {.name = "tfdata",
               .summary = "tf.data: shuffled files, interleaved, through a shuffle buffer",
               .options = tfdata_options,
               .settings_size = sizeof(struct tfdata_settings),
               .state_size = sizeof(struct tfdata_state)},
    .open = tfdata_open,
    .close = sequence_close,
    .begin = tfdata_begin,
    .next = tfdata_next,
    .draws = sequence_draws,
};
