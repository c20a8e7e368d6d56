/* SPDX-License-Identifier: Apache-2.0
 * The mmap reader: zero-copy reads of mapped files. The pool's threads take the page faults, so
 * parsing and decoding never wait for a disk unnoticed. A mapping stays until its last borrowed
 * record is released. */
#include "base/option.h"
#include "readers/zero_copy.h"
#include "readers/plugins.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct mmap_settings {
    uint64_t threads, files;
    bool readahead;
};

#define FIELD(field) offsetof(struct mmap_settings, field)
static const struct option_spec mmap_options[] = {
    {"threads", 0, OPTION_COUNT, FIELD(threads), "0", .maximum = 4096,
     .summary = "threads that take page faults (0: one per read in flight)"},
    {"files", 0, OPTION_COUNT, FIELD(files), "auto", .zero = "auto", .maximum = UINT32_MAX,
     .summary = "maximum number of mapped files (auto: half of vm.max_map_count)"},
    {"readahead", 0, OPTION_FLAG, FIELD(readahead),
     .summary = "enable the kernel's readahead (for sequential reads)"},
    {0},
};

struct mmap_state {
    struct io_pool *pool; /* first, for the operations of io_pool.h */
    int pagemap;
};

static void mmap_task(struct io_task *task)
{
    const struct handle *handle = task->handle;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint64_t left = task->offset < handle->map_bytes ? handle->map_bytes - task->offset : 0;
    uint32_t bytes = left < task->bytes ? (uint32_t)left : task->bytes;
    uintptr_t first = (uintptr_t)handle->map + task->offset;

    /* Read it all at once; faults alone would read page by page. */
    madvise((void *)(first - first % page), bytes + first % page, MADV_WILLNEED);
    borrow_pages(task, handle->map + task->offset, bytes);
}

static bool mmap_task_at_once(void *state, struct io_task *task)
{
    const struct mmap_state *mmap_state = state;

    return borrow_resident(mmap_state->pagemap, task, task->handle->map + task->offset);
}

static int mmap_open(void *state, const void *chosen, const struct reader_config *config,
                     struct reader_traits *traits)
{
    struct mmap_state *mmap_state = state;
    const struct mmap_settings *settings = chosen;
    struct io_pool_settings pool_settings = {
        .config = config,
        .threads = (uint32_t)settings->threads,
        .files = (uint32_t)settings->files,
        .flags = HANDLES_MAP | (settings->readahead ? 0U : HANDLES_RANDOM),
        .work = mmap_task,
        .at_once = mmap_task_at_once,
        .state = state,
    };

    mmap_state->pagemap = zero_copy_open();
    int code = io_pool_create(&mmap_state->pool, &pool_settings, &traits->alignment);
    if (code)
        return code;
    traits->zero_copy = true;
    snprintf(traits->engine, sizeof traits->engine, "mmap, pages faulted in by %u threads",
             io_pool_threads(mmap_state->pool));
    return 0;
}

static void mmap_close(void *state)
{
    struct mmap_state *mmap_state = state;

    io_pool_destroy(mmap_state->pool);
    if (mmap_state->pagemap >= 0)
        close(mmap_state->pagemap);
}

const struct reader_ops reader_mmap = {
    .plugin = {.name = "mmap",
               .summary = "zero-copy reads of mapped files, through the page cache",
               .options = mmap_options,
               .settings_size = sizeof(struct mmap_settings),
               .state_size = sizeof(struct mmap_state)},
    .open = mmap_open,
    .close = mmap_close,
    .submit = io_pool_submit,
    .reap = io_pool_reap,
    .wake = io_pool_wake,
    .release = io_pool_release,
};
