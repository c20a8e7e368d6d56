/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/lend.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14, glibc 2.35 */
#define MADV_POPULATE_READ 22
#endif

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
    while (madvise((void *)(uintptr_t)first, bytes, MADV_POPULATE_READ)) {
        if (errno == EINVAL)
            return touch_pages(first, bytes, page);
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return 0;
}

/* A fault that fails is either past the end of a file cut short, or an error of the storage. */
static int cause_of_fault(const struct handle *handle)
{
    struct stat now;

    if (stat(handle->path, &now))
        return errno == ENOENT ? -ESTALE : -errno;
    return (uint64_t)now.st_size < handle->bytes ? -ESTALE : -EIO;
}

void lend_pages(struct pool_job *job, const uint8_t *first, uint32_t bytes)
{
    int code = bytes < job->needed ? -ESTALE : fault_in(first, bytes);

    if (code) {
        job->result = code == -EFAULT ? cause_of_fault(job->handle) : code;
        return;
    }
    job->data = first;
    job->lent = true;
    job->result = (int)bytes;
}
