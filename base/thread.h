/* SPDX-License-Identifier: Apache-2.0
 *
 * thread: a thread with one role. If its body fails, the reason is passed to the thread that joins
 * it.
 */
#ifndef IOBENCH_BASE_THREAD_H
#define IOBENCH_BASE_THREAD_H

#include "base/fail.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct thread {
    pthread_t handle;
    bool started;
    int (*body)(void *argument);
    void *argument;
    int code;
    char reason[FAIL_REASON_BYTES];
};

/* name: shown by ps and gdb, at most 15 bytes. Returns 0 or a negative errno with a reason. */
int thread_start(struct thread *thread, const char *name, int (*body)(void *), void *argument);

/* Wait for the thread and return its body's code; on failure its reason becomes this thread's.
 * Returns 0 for a thread never started. */
int thread_join(struct thread *thread);

/* Join one of several threads; first: what those before returned. Returns the first failure that is
 * not -ECANCELED, with its reason, else -ECANCELED or 0. */
int thread_join_next(struct thread *thread, int first);

/* A condition whose waits end at a time of clock_now_ns(), whatever happens to the wall clock. */
void thread_condition_init(pthread_cond_t *condition);
/* Returns false once it is until_ns. */
bool thread_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);

/* Return the CPUs this process may use, cgroup quota included; at least 1. */
unsigned thread_cpu_count(void);

#endif
