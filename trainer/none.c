/* SPDX-License-Identifier: Apache-2.0
 * The none trainer: accepts batches without delay. */
#include "trainer/plugins.h"

static int none_open(void *state, const void *settings, const struct trainer_config *config)
{
    (void)state;
    (void)settings;
    (void)config;
    return 0;
}

static void none_close(void *state)
{
    (void)state;
}

static int none_step(void *state, const struct trainer_batch *batch, struct trainer_times *times)
{
    (void)state;
    (void)batch;
    (void)times;
    return 0;
}

const struct trainer_ops trainer_none = {
    .plugin = {.name = "none", .summary = "accepts batches without delay", .idle = true},
    .open = none_open,
    .close = none_close,
    .step = none_step,
};
