/* SPDX-License-Identifier: Apache-2.0
 * Blocking writes, one at a time: what remains where io_uring is refused. */
#include "cmd/checkpoint/plugins.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct blocking_writer {
    const struct writer_config *config;
    struct writer_completion *done; /* a ring of depth */
    uint32_t first, count;
};

static int pwrite_open(void *state, const struct writer_config *config,
                       char engine[WRITER_ENGINE_BYTES])
{
    struct blocking_writer *writer = state;

    writer->config = config;
    writer->done = memory_array(config->depth, sizeof *writer->done);
    snprintf(engine, WRITER_ENGINE_BYTES, "pwrite, one at a time%s",
             config->direct ? ", O_DIRECT" : "");
    return writer->done ? 0 : -ENOMEM;
}

static void pwrite_close(void *state)
{
    free(((struct blocking_writer *)state)->done);
}

static void pwrite_submit(void *state, const struct writer_request *request)
{
    struct blocking_writer *writer = state;
    const uint8_t *from = writer->config->buffers[request->index].iov_base;
    ssize_t count = pwrite(request->fd, from + request->from, request->bytes - request->from,
                           (off_t)(request->offset + request->from));

    writer->done[(writer->first + writer->count++) % writer->config->depth] =
        (struct writer_completion){request->index, count < 0 ? -errno : (int)count, clock_now_ns()};
}

static int pwrite_reap(void *state, struct writer_completion *done, uint64_t wait_ns)
{
    struct blocking_writer *writer = state;

    (void)wait_ns;
    if (writer->count == 0)
        return 0;
    *done = writer->done[writer->first];
    writer->first = (writer->first + 1) % writer->config->depth;
    writer->count--;
    return 1;
}

const struct writer_ops writer_pwrite = {
    .plugin = {.name = "pwrite",
               .summary = "blocking writes, one at a time per rank",
               .state_size = sizeof(struct blocking_writer)},
    .open = pwrite_open,
    .close = pwrite_close,
    .submit = pwrite_submit,
    .reap = pwrite_reap,
};
