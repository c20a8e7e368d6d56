/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "base/control_group.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

static void *run_body(void *argument)
{
    struct thread *thread = argument;

    fail_clear();
    thread->code = thread->body(thread->argument);
    memcpy(thread->reason, fail_reason(), sizeof thread->reason);
    return NULL;
}

int thread_start(struct thread *thread, const char *name, int (*body)(void *), void *argument)
{
    thread->body = body;
    thread->argument = argument;
    thread->code = 0;
    int code = pthread_create(&thread->handle, NULL, run_body, thread);
    if (code)
        return fail(code,
                    "cannot start thread %s: no memory (ulimit -v), or no more threads (ulimit -u, "
                    "pids.max of the control group)",
                    name);
    thread->started = true;
    pthread_setname_np(thread->handle, name);
    return 0;
}

int thread_join(struct thread *thread)
{
    if (!thread->started)
        return 0;
    pthread_join(thread->handle, NULL);
    thread->started = false;
    if (thread->code < 0)
        return fail(thread->code, "%s", thread->reason);
    return thread->code;
}

int thread_join_next(struct thread *thread, int first)
{
    const bool keeps = first && first != -ECANCELED;

    if (keeps)
        fail_hold();
    const int code = thread_join(thread);
    if (keeps)
        fail_release();
    return keeps || code == 0 ? first : code;
}

void thread_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool thread_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};

    return pthread_cond_timedwait(condition, lock, &until) == 0;
}

unsigned thread_cpu_count(void)
{
    cpu_set_t set;
    unsigned count = 1, quota = control_group_cpus("/proc", "/sys");

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        count = (unsigned)CPU_COUNT(&set);
    if (quota && quota < count)
        count = quota;
    return count ? count : 1;
}
