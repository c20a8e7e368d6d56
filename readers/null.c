/* SPDX-License-Identifier: Apache-2.0
 * The null reader: completes every request at once and reads nothing. Measures the harness itself:
 *
 *     iobench run --reader null */
#include "readers/reader.h"

#include "base/memory.h"
#include "readers/plugins.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct null_state {
    struct read_request **done;
    uint32_t head, count, depth;
};

static int null_open(void *state, const void *settings, const struct reader_config *config,
                     struct reader_traits *traits)
{
    struct null_state *null = state;

    (void)settings;
    null->depth = config->depth;
    null->done = memory_array(config->depth, sizeof(struct read_request *));
    if (!null->done)
        return -ENOMEM;
    traits->no_bytes = true;
    snprintf(traits->engine, sizeof traits->engine, "null (no bytes are read)");
    return 0;
}

static void null_close(void *state)
{
    free(((struct null_state *)state)->done);
}

static int null_submit(void *state, struct read_request *request)
{
    struct null_state *null = state;

    assert(null->count < null->depth);
    request->result = (int)request->bytes;
    null->done[(null->head + null->count++) % null->depth] = request;
    return 0;
}

static int null_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct null_state *null = state;
    uint32_t count = null->count < max ? null->count : max;

    (void)wait_ns;
    for (uint32_t i = 0; i < count; i++)
        done[i] = null->done[(null->head + i) % null->depth];
    null->head = (null->head + count) % null->depth;
    null->count -= count;
    return (int)count;
}

const struct reader_ops reader_null = {
    .plugin = {.name = "null",
               .summary = "reads nothing; measures the harness itself",
               .idle = true,
               .state_size = sizeof(struct null_state)},
    .open = null_open,
    .close = null_close,
    .submit = null_submit,
    .reap = null_reap,
};
