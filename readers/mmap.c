/* SPDX-License-Identifier: Apache-2.0
 * The mmap reader: lends the pages of mapped files. The page faults are taken here, on the
 * pool's threads, by MADV_POPULATE_READ: it says EFAULT where touching the page would end the
 * program by SIGBUS, and nobody who parses or decodes waits for a disk unseen. */
#include "base/option.h"
#include "readers/plugins.h"
#include "readers/pool.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14, glibc 2.35 */
#define MADV_POPULATE_READ 22
#endif

struct mmap_settings {
    uint64_t threads;
    bool readahead;
};

static const struct option_spec mmap_options[] = {
    {.name = "threads",
     .type = OPTION_COUNT,
     .offset = offsetof(struct mmap_settings, threads),
     .fallback = "0",
     .maximum = 4096,
     .summary = "threads that take the page faults (0: as many as the depth)"},
    {.name = "readahead",
     .type = OPTION_FLAG,
     .offset = offsetof(struct mmap_settings, readahead),
     .summary = "let the kernel read ahead (for reading in order)"},
    {0},
};

struct mmap_state {
    struct pool *pool;
};

/* For kernels before 5.14: copy one byte of each page to ourselves, which fails where touching
 * would kill. */
static int touch_pages(const uint8_t *first, size_t bytes, size_t page)
{
    for (size_t at = 0; at < bytes; at += page) {
        uint8_t byte;
        struct iovec to = {.iov_base = &byte, .iov_len = 1};
        struct iovec from = {.iov_base = (void *)(uintptr_t)(first + at), .iov_len = 1};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
            return -errno;
    }
    return 0;
}

static int fault_in(const uint8_t *first, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t before = (uintptr_t)first % page;

    first -= before;
    bytes += before;
    /* All of it at once, where faults alone would read page by page. */
    madvise((void *)(uintptr_t)first, bytes, MADV_WILLNEED);
    while (madvise((void *)(uintptr_t)first, bytes, MADV_POPULATE_READ)) {
        if (errno == EINVAL)
            return touch_pages(first, bytes, page);
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return 0;
}

/* A fault that fails is either past the end of a file cut short, or an error of the storage. */
static int cause_of_fault(const struct pool_job *job)
{
    struct stat now;

    if (stat(job->handle->path, &now))
        return errno == ENOENT ? -ESTALE : -errno;
    return (uint64_t)now.st_size < job->handle->map_bytes ? -ESTALE : -EIO;
}

static void lend_job(struct pool_job *job)
{
    uint64_t size = job->handle->map_bytes;
    uint64_t left = job->offset < size ? size - job->offset : 0;
    uint32_t bytes = left < job->bytes ? (uint32_t)left : job->bytes;

    if (bytes < job->needed) {
        job->result = -ESTALE;
        return;
    }
    int code = fault_in(job->handle->map + job->offset, bytes);
    if (code) {
        job->result = code == -EFAULT ? cause_of_fault(job) : code;
        return;
    }
    job->data = job->handle->map + job->offset;
    job->lent = true;
    job->result = (int)bytes;
}

static int mmap_open(void *state, const void *chosen, const struct reader_site *site,
                     struct reader_traits *traits)
{
    struct mmap_state *mmap_state = state;
    const struct mmap_settings *settings = chosen;
    struct pool_settings pool_settings = {
        .site = site,
        .threads = (uint32_t)settings->threads,
        .flags = HANDLES_MAP | (settings->readahead ? 0U : HANDLES_RANDOM),
        .work = lend_job,
    };
    int code = pool_create(&mmap_state->pool, &pool_settings, &traits->alignment);

    if (code)
        return code;
    traits->lends = true;
    snprintf(traits->engine, sizeof traits->engine, "mmap, pages faulted in by %u threads",
             pool_threads(mmap_state->pool));
    return 0;
}

static void mmap_close(void *state)
{
    pool_destroy(((struct mmap_state *)state)->pool);
}

static int mmap_submit(void *state, struct read_request *request)
{
    return pool_submit(((struct mmap_state *)state)->pool, request);
}

static int mmap_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    return pool_reap(((struct mmap_state *)state)->pool, done, max, wait_ns);
}

static void mmap_release(void *state, struct read_request *request)
{
    pool_release(((struct mmap_state *)state)->pool, request);
}

const struct reader_ops reader_mmap = {
    .plugin = {.name = "mmap",
               .summary = "lends the pages of mapped files, through the page cache",
               .options = mmap_options,
               .settings_size = sizeof(struct mmap_settings),
               .state_size = sizeof(struct mmap_state)},
    .open = mmap_open,
    .close = mmap_close,
    .submit = mmap_submit,
    .reap = mmap_reap,
    .release = mmap_release,
};
