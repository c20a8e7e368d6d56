/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "base/file.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
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
        return fail(code, "cannot start thread %s: %s", name, fail_errno_text(code));
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
    char reason[FAIL_REASON_BYTES];

    snprintf(reason, sizeof reason, "%s", fail_reason());
    int code = thread_join(thread);
    if (first == 0 || (first == -ECANCELED && code))
        return code;
    return fail(first, "%s", reason);
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

/* cgroup v2 "max 100000" or "150000 100000"; v1 has the two numbers in two files. */
static unsigned cgroup_cpu_quota(void)
{
    double quota = 0, period = 0;
    FILE *file = file_stream_kernel("/sys/fs/cgroup/cpu.max");

    if (file) {
        if (fscanf(file, "%lf %lf", &quota, &period) != 2)
            quota = 0;
        fclose(file);
    } else if ((file = file_stream_kernel("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))) {
        if (fscanf(file, "%lf", &quota) != 1 || quota < 0)
            quota = 0;
        fclose(file);
        if ((file = file_stream_kernel("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))) {
            if (fscanf(file, "%lf", &period) != 1)
                period = 0;
            fclose(file);
        }
    }
    if (quota <= 0 || period <= 0)
        return 0;
    return quota < period ? 1 : (unsigned)(quota / period);
}

unsigned thread_cpu_count(void)
{
    cpu_set_t set;
    unsigned count = 1, quota = cgroup_cpu_quota();

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        count = (unsigned)CPU_COUNT(&set);
    if (quota && quota < count)
        count = quota;
    return count ? count : 1;
}
