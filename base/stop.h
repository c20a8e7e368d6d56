/* SPDX-License-Identifier: Apache-2.0
 *
 * stop: one flag that asks whatever this process does to end soon, with -EINTR. Set by signals,
 * read by any thread, never cleared.
 */
#ifndef IOBENCH_BASE_STOP_H
#define IOBENCH_BASE_STOP_H

#include "base/atomic.h"

extern struct flag stop_asked;

/* Set the flag: a signal handler. */
void stop_ask(int number);

/* Returns 0, or -EINTR with a reason once asked. */
int stop_check(void);

/* A long call asks this now and then, from its own thread; nonzero ends the call, as its result. */
struct tick {
    int (*ask)(void *context); /* NULL: go on */
    void *context;
};

static inline int tick_ask(struct tick tick)
{
    return tick.ask ? tick.ask(tick.context) : 0;
}

#endif
