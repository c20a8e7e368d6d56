/* SPDX-License-Identifier: Apache-2.0
 * The writers, in order of preference; the last one is here. */
#include "cmd/checkpoint/save.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Blocking writes, one at a time: what remains where io_uring is refused. */

struct blocking_writer {
    const struct writer_config *config;
    struct writer_completion *done; /* not reaped yet, at most `depth` */
    uint32_t count;
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

    assert(writer->count < writer->config->depth);
    writer->done[writer->count++] =
        (struct writer_completion){request->index, count < 0 ? -errno : (int)count, clock_now_ns()};
}

static int pwrite_reap(void *state, struct writer_completion *done, uint64_t wait_ns)
{
    struct blocking_writer *writer = state;

    (void)wait_ns;
    if (writer->count == 0)
        return 0;
    *done = writer->done[--writer->count];
    return 1;
}

static const struct writer_ops writer_pwrite = {
    .plugin = {.name = "pwrite",
               .summary = "blocking writes, one at a time per rank",
               .state_size = sizeof(struct blocking_writer)},
    .open = pwrite_open,
    .close = pwrite_close,
    .submit = pwrite_submit,
    .reap = pwrite_reap,
};

const struct plugin *const writer_registry[] = {
#ifdef HAVE_URING
    &writer_uring.plugin,
#endif
    &writer_pwrite.plugin,
    NULL,
};
