/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/waker.h"

#include "base/fail.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int waker_open(struct waker *waker)
{
    *waker = (struct waker){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return waker->fd < 0 ? fail(errno, "eventfd: %s", fail_errno_text(errno)) : 0;
}

void waker_close(struct waker *waker)
{
    if (waker->fd >= 0)
        close(waker->fd);
    waker->fd = -1;
}

/* Only the first of several calls enters the kernel. A full eventfd is readable, too. */
void waker_wake(struct waker *waker)
{
    if (!flag_test_and_set(&waker->is_asked))
        eventfd_write(waker->fd, 1);
}

bool waker_was_asked(struct waker *waker)
{
    return flag_test_and_clear(&waker->is_asked);
}

void waker_silence(const struct waker *waker)
{
    eventfd_t count;

    eventfd_read(waker->fd, &count);
}
