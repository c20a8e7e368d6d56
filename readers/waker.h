/* SPDX-License-Identifier: Apache-2.0
 *
 * waker: wakes a reader that waits in the kernel for descriptors or completions. The reader also
 * waits for the waker's descriptor, which becomes readable. waker_wake(): any thread. All else: the
 * reader's thread.
 */
#ifndef IOBENCH_READERS_WAKER_H
#define IOBENCH_READERS_WAKER_H

#include "base/atomic.h"
#include "base/fail.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct waker {
    int fd; /* an eventfd */
    struct flag is_asked;
};

/* Returns 0 or a negative errno with a reason; call waker_close() either way. */
static inline int waker_open(struct waker *waker)
{
    *waker = (struct waker){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return waker->fd < 0 ? fail(errno, "eventfd: %s", fail_errno_text(errno)) : 0;
}

static inline void waker_close(struct waker *waker)
{
    if (waker->fd >= 0)
        close(waker->fd);
    waker->fd = -1;
}

/* Only the first of several calls enters the kernel. A full eventfd is readable, too. */
static inline void waker_wake(struct waker *waker)
{
    if (!flag_test_and_set(&waker->is_asked))
        eventfd_write(waker->fd, 1);
}

/* Return true if the waker was woken since the last call. */
static inline bool waker_was_asked(struct waker *waker)
{
    return flag_test_and_clear(&waker->is_asked);
}

/* Drain the readable descriptor before waiting for it again. */
static inline void waker_silence(const struct waker *waker)
{
    eventfd_t count;

    eventfd_read(waker->fd, &count);
}

#endif
