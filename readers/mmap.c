/* SPDX-License-Identifier: Apache-2.0
 * The mmap reader: zero-copy reads of mapped files. The pool's threads take the page faults, so
 * parsing and decoding never wait for a disk unnoticed. A mapping stays until its last borrowed
 * record is released. */
#include "readers/io_pool.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "readers/plugins.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14, glibc 2.35 */
#define MADV_POPULATE_READ 22
#endif

/* PAGEMAP_SCAN (include/uapi/linux/fs.h, Linux 6.7): find ranges of pages with a page table entry
 * (PAGE_IS_PRESENT). */
struct scan {
    uint64_t size, flags, start, end, walk_end, ranges, ranges_most, pages_most, inverted, all_of,
        any_of, returned;
};

struct scan_range {
    uint64_t start, end, categories;
};

#define SCAN_PAGES _IOWR('f', 16, struct scan)
#define SCAN_PRESENT 8

static int check_size(const struct handle *handle)
{
    struct stat now;

    if (stat(handle->file->path, &now))
        return errno == ENOENT ? -ESTALE : -errno;
    return (uint64_t)now.st_size < handle->file->bytes ? -ESTALE : 0;
}

/* A truncated file has zeros up to the end of its last page, which is 64 KiB on some kernels, and
 * no fault there. So a read that ends in a zero asks for the size. */
static int check_last(const struct handle *handle, const uint8_t *last)
{
    fault_guard_begin();
    const bool is_zero = *(const volatile uint8_t *)last == 0;
    if (!fault_guard_end(last, 1))
        return -EFAULT;
    return is_zero ? check_size(handle) : 0;
}

void borrow_pages(struct io_task *task, const uint8_t *first, uint32_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)first % page;
    const uint8_t *start = first - before;
    int code = bytes < task->needed ? -ESTALE : 0;

    while (code == 0 && madvise((void *)(uintptr_t)start, before + bytes, MADV_POPULATE_READ)) {
        if (errno != EINVAL && errno != EINTR && errno != EAGAIN)
            code = -errno;
        if (errno != EINVAL)
            continue;
        /* Before Linux 5.14: copy one byte of each page to ourselves, which fails instead of
         * raising SIGBUS. */
        for (size_t at = 0; at < before + bytes && code == 0; at += page) {
            uint8_t byte;
            struct iovec to = {.iov_base = &byte, .iov_len = 1};
            struct iovec from = {.iov_base = (void *)(uintptr_t)(start + at), .iov_len = 1};
            if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
                code = -errno;
        }
        break;
    }
    if (code == 0 && bytes > 0)
        code = check_last(task->handle, first + bytes - 1);
    if (code == -EFAULT) { /* past the end of a truncated file, or a storage error */
        code = check_size(task->handle);
        code = code ? code : -EIO;
    }
    task->result = code ? code : (int)bytes;
    if (code)
        return;
    task->data = first;
    task->borrowed = true;
}

/* Unlike mincore(), this reports no page past the end of a truncated file and also works for files
 * of other users. */
static bool is_mapped(int pagemap, const uint8_t *first, size_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)first;
    struct scan_range range = {0};
    struct scan scan = {.size = sizeof scan,
                        .start = bytes_align_down(at, page),
                        .end = bytes_align_up(at + bytes, page),
                        .ranges = (uintptr_t)&range,
                        .ranges_most = 1,
                        .all_of = SCAN_PRESENT,
                        .returned = SCAN_PRESENT};

    return ioctl(pagemap, SCAN_PAGES, &scan) == 1 && range.start == scan.start &&
           range.end == scan.end;
}

int zero_copy_open(void)
{
    int pagemap = file_open_quietly("/proc/self/pagemap", O_RDONLY);
    uint8_t here = 0;

    fault_guard_install();
    if (pagemap >= 0 && !is_mapped(pagemap, &here, sizeof here)) {
        close(pagemap);
        return -1;
    }
    return pagemap;
}

bool borrow_resident(int pagemap, struct io_task *task, const uint8_t *first)
{
    if (pagemap < 0 || task->offset + task->bytes > task->handle->file->bytes ||
        !is_mapped(pagemap, first, task->bytes) ||
        check_last(task->handle, first + task->bytes - 1))
        return false;
    task->data = first;
    task->borrowed = true;
    task->result = (int)task->bytes;
    return true;
}

/* ---- the reader ---- */

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
