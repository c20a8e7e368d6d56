/* SPDX-License-Identifier: Apache-2.0
 *
 * waker: wakes a reader that waits in the kernel for descriptors or completions. The reader also
 * waits for the waker's descriptor, which becomes readable. waker_wake(): any thread. All else: the
 * reader's thread.
 */
#ifndef IOBENCH_READERS_WAKER_H
#define IOBENCH_READERS_WAKER_H

#include "base/atomic.h"

#include <stdbool.h>

struct waker {
    int fd; /* an eventfd */
    struct flag is_asked;
};

/* Returns 0 or a negative errno with a reason; call waker_close() either way. */
int waker_open(struct waker *waker);
void waker_close(struct waker *waker);

void waker_wake(struct waker *waker);
/* Return true if the waker was woken since the last call. */
bool waker_was_asked(struct waker *waker);
/* Drain the readable descriptor before waiting for it again. */
void waker_silence(const struct waker *waker);

#endif
