/* SPDX-License-Identifier: Apache-2.0
 * The pread reader: blocking preadv2() on a pool of threads, one per read in flight. Works
 * everywhere, even where io_uring is refused. One request ends when at least `needed` bytes are
 * there; a shorter read is resumed (handle_resume). */
#include "base/option.h"
#include "readers/io_pool.h"
#include "readers/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <sys/uio.h>

struct pread_settings {
    uint64_t threads;
    bool direct, readahead;
};

#define FIELD(field) offsetof(struct pread_settings, field)
static const struct option_spec pread_options[] = {
    {"threads", 0, OPTION_COUNT, FIELD(threads), "0", .maximum = 4096,
     .summary = "reading threads (0: one per read in flight)"},
    {"direct", 0, OPTION_FLAG, FIELD(direct), .summary = "bypass the page cache (O_DIRECT)"},
    {"readahead", 0, OPTION_FLAG, FIELD(readahead),
     .summary = "enable the kernel's readahead (for sequential reads)"},
    {0},
};

struct pread_state {
    struct io_pool *pool; /* first, for the operations of io_pool.h */
};

void pread_task(struct io_task *task)
{
    int64_t from = 0;
    struct iovec whole = {.iov_base = task->buffer, .iov_len = task->bytes};
    struct iovec *parts = task->part_count > 0 ? task->parts : &whole;
    uint32_t part_count = task->part_count > 0 ? task->part_count : 1;

    while (from >= 0) {
        ssize_t count =
            preadv2(task->handle->fd, parts, (int)part_count, (off_t)task->offset + (off_t)from, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            task->result = -errno;
            return;
        }
        uint32_t got = (uint32_t)(from + count);
        if (got >= task->needed) {
            task->data = task->buffer;
            task->result = (int)got;
            return;
        }
        const int64_t resumed =
            handle_resume(task->handles, task->handle, task->offset, got, ++task->short_reads);
        if (resumed > from)
            read_parts_skip(&parts, &part_count, (uint64_t)(resumed - from));
        from = resumed;
    }
    task->result = (int)from;
}

static int pread_open(void *state, const void *chosen, const struct reader_config *config,
                      struct reader_traits *traits)
{
    struct pread_state *pread_state = state;
    const struct pread_settings *settings = chosen;
    struct io_pool_settings pool_settings = {
        .config = config,
        .threads = (uint32_t)settings->threads,
        .flags =
            (settings->direct ? HANDLES_DIRECT : 0U) | (settings->readahead ? 0U : HANDLES_RANDOM),
        .work = pread_task,
    };
    int code = io_pool_create(&pread_state->pool, &pool_settings, &traits->alignment);

    if (code)
        return code;
    traits->scatters = !settings->direct;
    snprintf(traits->engine, sizeof traits->engine, "preadv2 on %u threads%s",
             io_pool_threads(pread_state->pool), settings->direct ? ", O_DIRECT" : "");
    return 0;
}

static void pread_close(void *state)
{
    io_pool_destroy(((struct pread_state *)state)->pool);
}

const struct reader_ops reader_pread = {
    .plugin = {.name = "pread",
               .summary = "blocking reads on a pool of threads; works everywhere",
               .options = pread_options,
               .settings_size = sizeof(struct pread_settings),
               .state_size = sizeof(struct pread_state)},
    .open = pread_open,
    .close = pread_close,
    .submit = io_pool_submit,
    .reap = io_pool_reap,
    .wake = io_pool_wake,
};
