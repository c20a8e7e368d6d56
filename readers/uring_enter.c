/* SPDX-License-Identifier: Apache-2.0
 * Enter the kernel. liburing 2.3 and later submits and waits by one system call; older ones have no
 * call for deferred completions. */
#include "readers/uring.h"

#include <errno.h>

int uring_enter(struct io_uring *ring, uint64_t wait_ns)
{
    struct __kernel_timespec wait = {.tv_sec = (long long)(wait_ns / 1000000000),
                                     .tv_nsec = (long long)(wait_ns % 1000000000)};
    struct io_uring_cqe *first;
#ifdef URING_IS_OLD
    int code = io_uring_submit(ring);

    if (code >= 0 && wait_ns)
        code = io_uring_wait_cqe_timeout(ring, &first, &wait);
#else
    int code = wait_ns ? io_uring_submit_and_wait_timeout(ring, &first, 1, &wait, NULL)
                       : io_uring_submit_and_get_events(ring);
#endif

    /* EBUSY, EAGAIN: reap completions first. */
    return code >= 0 || code == -ETIME || code == -EINTR || code == -EBUSY || code == -EAGAIN
               ? 0
               : code;
}
