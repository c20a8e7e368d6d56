/* SPDX-License-Identifier: Apache-2.0
 * tf.data as it is most often written: shuffle the list of files, interleave a few of them,
 * shuffle buffer. */
#include "base/fail.h"
#include "base/option.h"
#include "shuffle/buffer.h"
#include "shuffle/plugins.h"
#include "shuffle/source.h"

#include <errno.h>
#include <stdlib.h>

struct tfdata_settings {
    uint64_t buffer, interleave, length;
    bool files;
};

struct open_file {
    uint64_t position, end; /* in the walk over the shuffled files; equal: none is open */
};

struct tfdata_state {
    struct source source;
    struct buffer buffer;
    struct open_file *files;
    uint32_t file_count, turn; /* whose turn it is */
    uint64_t length, taken;    /* records in a row from one file */
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

static int tfdata_open(void *state, const void *settings, const struct plan_scope *scope,
                       struct plan_traits *traits)
{
    struct tfdata_state *tfdata = state;
    const struct tfdata_settings *chosen = settings;
    const struct source_rules rules = {.unit = SOURCE_SHARDS, .permute = chosen->files};
    int code = buffer_refuse_elastic(scope);

    if (code == 0)
        code = source_open(&tfdata->source, scope, &rules, traits);
    if (code)
        return code;
    const uint64_t files = tfdata->source.unit_count;
    tfdata->file_count = (uint32_t)(chosen->interleave < files ? chosen->interleave : files);
    tfdata->length = chosen->length;
    tfdata->files = source_table(scope, traits, tfdata->file_count, sizeof *tfdata->files,
                                 "the files it interleaves");
    if (!tfdata->files)
        return -ENOMEM;
    return buffer_open(&tfdata->buffer, scope, chosen->buffer, chosen->buffer,
                       source_draws_max(&tfdata->source), traits);
}

static void tfdata_close(void *state)
{
    struct tfdata_state *tfdata = state;

    buffer_close(&tfdata->buffer);
    source_close(&tfdata->source);
    free(tfdata->files);
    tfdata->files = NULL;
}

static int tfdata_begin(void *state, uint64_t epoch)
{
    struct tfdata_state *tfdata = state;
    int code = source_begin(&tfdata->source, epoch);

    if (code)
        return code;
    for (uint32_t i = 0; i < tfdata->file_count; i++)
        tfdata->files[i] = (struct open_file){0};
    tfdata->turn = 0;
    tfdata->taken = tfdata->opened = 0;
    buffer_begin(&tfdata->buffer, source_seed(&tfdata->source.scope, SOURCE_BUFFER, epoch, false),
                 tfdata->source.draws);
    return 0;
}

/* A file that ends is replaced by the next one when its turn comes. */
static uint64_t tfdata_input(void *context)
{
    struct tfdata_state *tfdata = context;

    for (;;) {
        struct open_file *file = &tfdata->files[tfdata->turn];
        if (file->position == file->end && tfdata->taken == 0 &&
            tfdata->opened < tfdata->source.length) {
            file->position = tfdata->opened;
            uint64_t begin;
            source_bounds(&tfdata->source, file->position, &begin, &file->end);
            tfdata->opened = file->end;
        }
        if (file->position < file->end && tfdata->taken < tfdata->length) {
            tfdata->taken++;
            return source_at(&tfdata->source, file->position++);
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

static uint64_t tfdata_draws(void *state)
{
    return ((struct tfdata_state *)state)->source.draws;
}

const struct shuffle_ops shuffle_tfdata = {
    .plugin = {.name = "tfdata",
               .summary = "tf.data: shuffled files, interleaved, through a shuffle buffer",
               .options = tfdata_options,
               .settings_size = sizeof(struct tfdata_settings),
               .state_size = sizeof(struct tfdata_state)},
    .open = tfdata_open,
    .close = tfdata_close,
    .begin = tfdata_begin,
    .next = tfdata_next,
    .draws = tfdata_draws,
};
