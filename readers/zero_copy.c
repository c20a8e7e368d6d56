/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/zero_copy.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
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

    if (stat(handle->path, &now))
        return errno == ENOENT ? -ESTALE : -errno;
    return (uint64_t)now.st_size < handle->bytes ? -ESTALE : 0;
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
    if (pagemap < 0 || task->offset + task->bytes > task->handle->bytes ||
        !is_mapped(pagemap, first, task->bytes) ||
        check_last(task->handle, first + task->bytes - 1))
        return false;
    task->data = first;
    task->borrowed = true;
    task->result = (int)task->bytes;
    return true;
}
