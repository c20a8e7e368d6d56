/* SPDX-License-Identifier: Apache-2.0
 * The none exchange: one rank, alone. */
#include "trainer/plugins.h"

static int none_open(void *state, const void *settings, const struct exchange_config *config)
{
    (void)settings;
    (void)state;
    (void)config;
    return 0;
}

static void none_close(void *state, bool failed)
{
    (void)state;
    (void)failed;
}

static int none_ready(void *state, uint64_t done)
{
    (void)state;
    (void)done;
    return 0;
}

static int none_finish(void *state)
{
    (void)state;
    return 0;
}

const struct exchange_ops exchange_none = {
    .plugin = {.name = "none", .summary = "one process, alone"},
    .open = none_open,
    .close = none_close,
    .ready = none_ready,
    .finish = none_finish,
};
