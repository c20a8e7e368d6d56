/* SPDX-License-Identifier: Apache-2.0
 * Enter the kernel with liburing 2.0 to 2.2, which has no call for deferred completions. */
#include "readers/uring.h"

#include <errno.h>

const bool uring_can_defer = false;

int uring_enter(struct io_uring *ring, uint64_t wait_ns)
{
    struct __kernel_timespec wait = {.tv_sec = (long long)(wait_ns / 1000000000),
                                     .tv_nsec = (long long)(wait_ns % 1000000000)};
    struct io_uring_cqe *first;
    int code = io_uring_submit(ring);

    if (code >= 0 && wait_ns)
        code = io_uring_wait_cqe_timeout(ring, &first, &wait);
    return code >= 0 || code == -ETIME || code == -EINTR || code == -EBUSY || code == -EAGAIN
               ? 0
               : code;
}
