/* SPDX-License-Identifier: Apache-2.0 */
#include "base/workers.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { TICK_NS = 100000000 };

struct workers {
    const struct workers_job *job;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    uint64_t next, running;
    bool woken;
    int code; /* the first failure */
    char reason[FAIL_REASON_BYTES];
};

void workers_wake(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    workers->woken = true;
    pthread_cond_signal(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
}

/* Keep a failure, the first one, and stop the others. */
static void end_with(struct workers *workers, int code)
{
    if (code == 0)
        return;
    pthread_mutex_lock(&workers->lock);
    if (workers->code == 0) {
        workers->code = code;
        snprintf(workers->reason, sizeof workers->reason, "%s", fail_reason());
    }
    pthread_mutex_unlock(&workers->lock);
    if (workers->job->stop)
        workers->job->stop(workers->job->context);
}

static int run_worker(void *argument)
{
    struct workers *workers = argument;

    pthread_mutex_lock(&workers->lock);
    uint64_t number = workers->next++;
    pthread_mutex_unlock(&workers->lock);
    end_with(workers, workers->job->work(workers->job->context, workers, number));
    pthread_mutex_lock(&workers->lock);
    assert(number < workers->next && workers->running > 0);
    workers->running--;
    pthread_cond_signal(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
    return 0;
}

int workers_run(const struct workers_job *job, uint64_t count)
{
    struct workers workers = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER, .running = count};
    struct thread *threads = memory_array(count + 1, sizeof *threads);
    uint64_t started = 0;
    int code = 0;

    if (!threads)
        return -ENOMEM;
    thread_condition_init(&workers.changed);
    while (started < count && code == 0) {
        code = thread_start(&threads[started], job->name, run_worker, &workers);
        started += code == 0;
    }
    end_with(&workers, code);
    pthread_mutex_lock(&workers.lock);
    workers.running -= count - started;
    pthread_mutex_unlock(&workers.lock);
    for (bool is_over = false; !is_over;) {
        pthread_mutex_lock(&workers.lock);
        is_over = workers.running == 0;
        if (!is_over && !workers.woken)
            thread_condition_wait(&workers.changed, &workers.lock, clock_now_ns() + TICK_NS);
        workers.woken = false;
        pthread_mutex_unlock(&workers.lock);
        if (job->tick)
            end_with(&workers, job->tick(job->context));
    }
    for (uint64_t i = 0; i < started; i++)
        thread_join(&threads[i]);
    free(threads);
    return workers.code ? fail(workers.code, "%s", workers.reason) : 0;
}
