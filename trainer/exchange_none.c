/* SPDX-License-Identifier: Apache-2.0
 * The none exchange: one rank, alone. */
#include "trainer/plugins.h"

static int none_join(void *state, struct exchange_place *place)
{
    (void)state;
    *place = (struct exchange_place){.ranks = 1, .local_ranks = 1};
    return 0;
}

static int none_open(void *state, const struct exchange_site *site)
{
    (void)state;
    (void)site;
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

static int none_sum(void *state, double *values, uint32_t count)
{
    (void)state;
    (void)values;
    (void)count;
    return 0;
}

static int none_gather(void *state, double value, double *values)
{
    (void)state;
    values[0] = value;
    return 0;
}

const struct exchange_ops exchange_none = {
    .plugin = {.name = "none", .summary = "one process, alone"},
    .join = none_join,
    .open = none_open,
    .close = none_close,
    .ready = none_ready,
    .finish = none_finish,
    .sum = none_sum,
    .gather = none_gather,
};
