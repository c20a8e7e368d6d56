/* SPDX-License-Identifier: Apache-2.0
 *
 * Synthetic images as a source: dataset/synthesis.h, one generator per cursor. With a workload,
 * samples of random bytes with its sizes instead: storage sees the same, no decoder does.
 */
#include "cmd/pack/plugins.h"

#include "base/fail.h"
#include "base/option.h"
#include "base/random.h"
#include "dataset/synthesis.h"
#include "base/profiles/profiles.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct synthetic_settings {
    uint64_t count, seed, classes, mean_bytes;
    char *workload;
};

static const struct option_spec synthetic_options[] = {
    {"count", 0, OPTION_COUNT, offsetof(struct synthetic_settings, count), "10000", .minimum = 1,
     .summary = "images"},
    {"seed", 0, OPTION_COUNT, offsetof(struct synthetic_settings, seed), "1",
     .summary = "seed; the same seed gives the same images"},
    {"classes", 0, OPTION_COUNT, offsetof(struct synthetic_settings, classes), "1000", .minimum = 1,
     .maximum = 1e9, .summary = "number of labels, 0 to N-1"},
    {"mean", 0, OPTION_SIZE, offsetof(struct synthetic_settings, mean_bytes), "110kb",
     .minimum = 4000, .maximum = 4e6, .summary = "mean size of a JPEG"},
    {"workload", 0, OPTION_TEXT, offsetof(struct synthetic_settings, workload), .metavar = "NAME",
     .reach = OPTION_READS,
     .summary = "random bytes with the sizes of a workload's samples, such as unet3d-b200"},
    {0},
};

struct synthetic {
    struct synthesis_settings settings;
    double sample_bytes, deviation_bytes; /* of a workload; 0: images */
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
    if (!asked->workload)
        return 0;
    struct ini ini;
    int code = profiles_load("workload", asked->workload, NULL, &ini);
    if (code == 0) {
        synthetic->sample_bytes = profiles_number(&ini, "data", "sample-bytes");
        synthetic->deviation_bytes = profiles_number(&ini, "data", "sample-sd-bytes");
        if (!(synthetic->sample_bytes >= 1 && synthetic->sample_bytes <= 1e10))
            code = fail(EINVAL, "workload %s: expected sample-bytes in [data]", asked->workload);
    }
    ini_release(&ini);
    traits->image_bytes = (uint64_t)((double)asked->count * synthetic->sample_bytes);
    traits->fingerprint = random_hash_text(traits->fingerprint, asked->workload);
    snprintf(traits->what, sizeof traits->what, "synthetic, seed %llu, random bytes as %.100s",
             (unsigned long long)asked->seed, asked->workload);
    return code;
}

static int synthetic_cursor_open(void *state, void **cursor)
{
    struct synthetic *synthetic = state;

    *cursor = NULL;
    if (synthetic->sample_bytes > 0)
        return 0;
    *cursor = synthesis_open(&synthetic->settings);
    return *cursor ? 0 : -ENOMEM;
}

static void synthetic_cursor_close(void *state, void *cursor)
{
    (void)state;
    synthesis_close(cursor); /* NULL is fine */
}

static int synthetic_read(void *state, void *cursor, uint64_t number, struct source_buffer *slot,
                          struct sample *sample)
{
    struct synthetic *synthetic = state;

    if (synthetic->sample_bytes > 0) {
        struct random random = random_start(random_hash(synthetic->settings.seed, number, 0));
        /* Normally distributed, and at least a hundredth of the mean: 2% of 3D U-Net's would be
         * below 0. */
        const double drawn =
            synthetic->sample_bytes + synthetic->deviation_bytes * random_normal(&random);
        const size_t bytes = (size_t)fmax(fmax(drawn, synthetic->sample_bytes / 100), 1);
        int code = source_reserve(&slot->record, &slot->record_capacity, bytes + sizeof(uint64_t));
        uint64_t *at = slot->record;
        if (code)
            return code;
        for (size_t i = 0; i <= bytes / sizeof *at; i++)
            at[i] = random_next(&random);
        *sample = (struct sample){.image = slot->record,
                                  .image_bytes = bytes,
                                  .label = synthesis_label(&synthetic->settings, number),
                                  .encoding = SAMPLE_ENCODED};
        return 0;
    }
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
    .cursor_open = synthetic_cursor_open,
    .cursor_close = synthetic_cursor_close,
    .read = synthetic_read,
};
