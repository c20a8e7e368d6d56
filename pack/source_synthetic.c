/* SPDX-License-Identifier: Apache-2.0
 *
 * Synthetic images as a source: dataset/synthesis.h, one generator per cursor.
 */
#include "pack/plugins.h"

#include "base/fail.h"
#include "base/option.h"
#include "base/random.h"
#include "dataset/synthesis.h"

#include <errno.h>
#include <stdio.h>

struct synthetic_settings {
    uint64_t count, seed, classes, mean_bytes;
};

static const struct option_spec synthetic_options[] = {
    {.name = "count",
     .type = OPTION_COUNT,
     .offset = offsetof(struct synthetic_settings, count),
     .fallback = "10000",
     .minimum = 1,
     .summary = "images"},
    {.name = "seed",
     .type = OPTION_COUNT,
     .offset = offsetof(struct synthetic_settings, seed),
     .fallback = "1",
     .summary = "seed; the same seed gives the same images"},
    {.name = "classes",
     .type = OPTION_COUNT,
     .offset = offsetof(struct synthetic_settings, classes),
     .fallback = "1000",
     .minimum = 1,
     .maximum = 1e9,
     .summary = "number of labels, 0 to N-1"},
    {.name = "mean",
     .type = OPTION_SIZE,
     .offset = offsetof(struct synthetic_settings, mean_bytes),
     .fallback = "110kb",
     .minimum = 4000,
     .maximum = 4e6,
     .summary = "mean size of a JPEG"},
    {0},
};

struct synthetic {
    struct synthesis_settings settings;
};

static int synthetic_open(void *state, const void *settings, const char *path,
                          const struct source_config *config, struct source_traits *traits)
{
    const struct synthetic_settings *asked = settings;
    struct synthetic *synthetic = state;

    (void)path, (void)config;
    synthetic->settings = (struct synthesis_settings){.seed = asked->seed,
                                                      .classes = (uint32_t)asked->classes,
                                                      .mean_bytes = (uint32_t)asked->mean_bytes};
    traits->count = asked->count;
    traits->image_bytes = asked->count * asked->mean_bytes;
    traits->fingerprint = random_hash(asked->seed, asked->classes, asked->mean_bytes);
    snprintf(traits->what, sizeof traits->what, "synthetic, seed %llu, %llu classes",
             (unsigned long long)asked->seed, (unsigned long long)asked->classes);
    return 0;
}

static void synthetic_close(void *state)
{
    (void)state;
}

static int synthetic_cursor_open(void *state, void **cursor)
{
    struct synthetic *synthetic = state;

    *cursor = synthesis_open(&synthetic->settings);
    return *cursor ? 0 : -ENOMEM;
}

static void synthetic_cursor_close(void *state, void *cursor)
{
    (void)state;
    synthesis_close(cursor);
}

static int synthetic_read(void *state, void *cursor, uint64_t number, struct source_buffer *slot,
                          struct sample *sample)
{
    (void)state;
    int code = synthesis_make(cursor, number, sample);
    return code ? code : source_keep(slot, sample);
}

const struct source_ops source_synthetic = {
    .plugin = {.name = "synthetic",
               .summary = "synthetic images with the statistics of photographs",
               .options = synthetic_options,
               .settings_size = sizeof(struct synthetic_settings),
               .state_size = sizeof(struct synthetic)},
    .generates = true,
    .open = synthetic_open,
    .close = synthetic_close,
    .cursor_open = synthetic_cursor_open,
    .cursor_close = synthetic_cursor_close,
    .read = synthetic_read,
};
