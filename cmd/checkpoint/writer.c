/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/writer.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t DRAIN_NS = UINT64_C(10000000000), STEP_NS = 100000000;

static void close_engine(struct writer *writer)
{
    if (writer->is_held) {
        memory_keep(writer->state);
    } else if (writer->state) {
        writer->ops->close(writer->state);
        free(writer->state);
    }
    writer->state = NULL;
}

int writer_open(struct writer *writer, const struct plugin *plugin,
                const struct writer_config *config)
{
    const struct plugin *const only[] = {plugin, NULL};
    int code = 0, refusal = 0;

    *writer = (struct writer){.config = *config};
    writer->requests = memory_array(config->depth, sizeof *writer->requests);
    if (!writer->requests)
        return -ENOMEM;
    /* The best that works; the engine text names the refused one and the reason. */
    for (const struct plugin *const *row = plugin ? only : writer_registry; *row; row++) {
        writer->ops = (const struct writer_ops *)(const void *)*row; /* its first member */
        writer->state = memory_zeroed((*row)->state_size);
        code = writer->state ? writer->ops->open(writer->state, &writer->config, writer->engine)
                             : -ENOMEM;
        const size_t length = strlen(writer->engine);
        if (refusal)
            snprintf(writer->engine + length, sizeof writer->engine - length,
                     " (writer %s is refused here: %s)", row[-1]->name, fail_errno_text(refusal));
        if (code == 0)
            return 0;
        if (row[1])
            close_engine(writer);
        refusal = code;
    }
    return fail(code, "--writer %s: refused here: %s", writer->ops->plugin.name,
                fail_errno_text(code));
}

void writer_close(struct writer *writer)
{
    const uint64_t start_ns = clock_now_ns();
    struct writer_completion done;
    int found = 0;

    while (writer->state && writer->in_flight && found >= 0 &&
           clock_now_ns() - start_ns < DRAIN_NS) {
        found = writer->ops->reap(writer->state, &done, STEP_NS);
        writer->in_flight -= found > 0;
    }
    writer->is_held = writer->in_flight > 0;
    close_engine(writer);
    free(writer->requests);
    writer->requests = NULL;
}

void writer_write(struct writer *writer, uint32_t index, int fd, uint32_t bytes, uint64_t offset)
{
    struct writer_request *request = &writer->requests[index];

    assert(index < writer->config.depth && writer->in_flight < writer->config.depth);
    *request = (struct writer_request){
        .fd = fd, .index = index, .bytes = bytes, .offset = offset, .submit_ns = clock_now_ns()};
    writer->in_flight++;
    writer->ops->submit(writer->state, request);
}

int writer_wait(struct writer *writer, uint64_t wait_ns, const char *path)
{
    struct writer_completion done;
    int found = writer->ops->reap(writer->state, &done, wait_ns);

    if (found < 0)
        return found;
    if (found) {
        struct writer_request *request = &writer->requests[done.index];
        assert(done.index < writer->config.depth && writer->in_flight > 0);
        int result = done.result;
        if (result == -EAGAIN || result == -EINTR)
            result = 0;
        else if (result == 0)
            result = -ENOSPC;
        if (result < 0) {
            writer->in_flight--;
            return fail(result, "%s: offset %llu: cannot write: %s", path,
                        (unsigned long long)(request->offset + request->from),
                        fail_errno_text(result));
        }
        request->from += (uint32_t)result;
        if (request->from < request->bytes) {
            writer->ops->submit(writer->state, request);
            return -EAGAIN;
        }
        writer->in_flight--;
        histogram_add(&writer->latency_ns, done.ended_ns - request->submit_ns);
        return (int)done.index;
    }
    const uint64_t now_ns = clock_now_ns(), timeout_ns = writer->config.timeout_ns;
    for (uint32_t i = 0; timeout_ns && i < writer->config.depth; i++) {
        const struct writer_request *request = &writer->requests[i];
        if (request->from < request->bytes && now_ns - request->submit_ns > timeout_ns)
            return fail(ETIMEDOUT, "%s: storage not responding: a write has taken %.0f s", path,
                        (double)(now_ns - request->submit_ns) * 1e-9);
    }
    return -EAGAIN;
}

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

const struct writer_ops writer_pwrite = {
    .plugin = {.name = "pwrite",
               .summary = "blocking writes, one at a time per rank",
               .state_size = sizeof(struct blocking_writer)},
    .open = pwrite_open,
    .close = pwrite_close,
    .submit = pwrite_submit,
    .reap = pwrite_reap,
};
