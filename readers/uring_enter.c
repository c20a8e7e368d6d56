/* SPDX-License-Identifier: Apache-2.0
 * Enter the kernel with liburing 2.3 and later: one system call submits and waits. */
#include "readers/uring.h"

#include <errno.h>

const bool uring_can_defer = true;

int uring_enter(struct io_uring *ring, uint64_t wait_ns)
{
    struct __kernel_timespec wait = {.tv_sec = (long long)(wait_ns / 1000000000),
                                     .tv_nsec = (long long)(wait_ns % 1000000000)};
    struct io_uring_cqe *first;
    int code = wait_ns ? io_uring_submit_and_wait_timeout(ring, &first, 1, &wait, NULL)
                       : io_uring_submit_and_get_events(ring);

    /* EBUSY, EAGAIN: reap completions first. */
    return code >= 0 || code == -ETIME || code == -EINTR || code == -EBUSY || code == -EAGAIN
               ? 0
               : code;
}
