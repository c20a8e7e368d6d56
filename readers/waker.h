/* SPDX-License-Identifier: Apache-2.0
 *
 * waker: wakes a reader that waits in the kernel for descriptors or completions. It has a
 * descriptor that becomes readable; the reader waits for that too. wake() may be called by any
 * thread, the rest belongs to the reader's.
 */
#ifndef IOBENCH_READERS_WAKER_H
#define IOBENCH_READERS_WAKER_H

#include "base/atomic.h"

#include <stdbool.h>

struct waker {
    int fd; /* an eventfd */
    struct flag is_asked;
};

/* 0 or a negative errno with a reason. Close it after a failed open too. */
int waker_open(struct waker *waker);
void waker_close(struct waker *waker);

void waker_wake(struct waker *waker);
/* True when it was woken since the last call. */
bool waker_was_asked(struct waker *waker);
/* The descriptor is readable: make it silent, before it is waited for again. */
void waker_silence(const struct waker *waker);

#endif
