/* SPDX-License-Identifier: Apache-2.0
 * The null reader: completes every request at once and reads nothing. Measures the harness itself:
 *
 *     iobench run --reader null */
#include "readers/plugins.h"

#include <stdio.h>
#include <stdlib.h>

static int null_open(void *state, const void *settings, const struct reader_config *config,
                     struct reader_traits *traits)
{
    (void)settings;
    traits->no_bytes = true;
    snprintf(traits->engine, sizeof traits->engine, "null (no bytes are read)");
    return request_ring_open(state, config->depth);
}

static void null_close(void *state)
{
    free(((struct request_ring *)state)->entries);
}

static int null_submit(void *state, struct read_request *request)
{
    request->result = (int)request->bytes;
    request_ring_add(state, request);
    return 0;
}

static int null_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    (void)wait_ns;
    return (int)request_ring_take(state, done, max);
}

const struct reader_ops reader_null = {
    .plugin = {.name = "null",
               .summary = "reads nothing; measures the harness itself",
               .idle = true,
               .state_size = sizeof(struct request_ring)},
    .open = null_open,
    .close = null_close,
    .submit = null_submit,
    .reap = null_reap,
};
