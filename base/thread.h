/* SPDX-License-Identifier: Apache-2.0
 *
 * thread: a worker with one role. When its body fails, the reason is kept and handed to the
 * thread that joins it.
 */
#ifndef IOBENCH_BASE_THREAD_H
#define IOBENCH_BASE_THREAD_H

#include "base/fail.h"

#include <pthread.h>
#include <stdbool.h>

struct thread {
    pthread_t handle;
    bool started;
    int (*body)(void *argument);
    void *argument;
    int code;
    char reason[FAIL_REASON_BYTES];
};

/* name: shown by ps and gdb, at most 15 bytes. 0 or a negative errno with a reason. */
int thread_start(struct thread *thread, const char *name, int (*body)(void *), void *argument);

/* Wait for the end and return the body's code; on failure its reason becomes this thread's.
 * A thread never started gives 0. */
int thread_join(struct thread *thread);

/* CPUs this process may run on, cgroup quota included; at least 1. */
unsigned thread_cpu_count(void);

#endif
