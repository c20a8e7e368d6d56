/* SPDX-License-Identifier: Apache-2.0
 * A single process, without peers. */
#include "ranks/plugins.h"

#include <string.h>
#include <unistd.h>

static int none_join(void *state, struct ranks_place *place)
{
    (void)state;
    *place = (struct ranks_place){.ranks = 1, .local_ranks = 1, .nodes = 1};
    gethostname(place->host, sizeof place->host - 1);
    return 0;
}

static void none_leave(void *state, bool orderly)
{
    (void)state;
    (void)orderly;
}

static int none_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    (void)state;
    memcpy(all, mine, bytes);
    return 0;
}

static int none_test(void *state, bool *done)
{
    (void)state;
    *done = true;
    return 0;
}

static int none_call(void *state, uint32_t to, uint64_t word)
{
    (void)state;
    (void)to;
    (void)word;
    return 0;
}

static int none_hear(void *state, uint32_t *from, uint64_t *word, bool *heard)
{
    (void)state;
    (void)from;
    (void)word;
    *heard = false;
    return 0;
}

/* No other rank exists to send to. */
const struct ranks_ops ranks_none = {
    .plugin = {.name = "none", .summary = "one process, alone"},
    .join = none_join,
    .leave = none_leave,
    .gather = none_gather,
    .test = none_test,
    .call = none_call,
    .hear = none_hear,
};
