/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/crew.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/thread.h"

#include <errno.h>

enum { FILES_A_THREAD = 64 }; /* fewer are not worth another thread */

struct crew {
    const struct crew_task *task;
    unsigned worker_count;
    struct counter done, ended;
    struct flag stop;
};

struct crew_worker {
    struct crew *crew;
    unsigned number;
    struct thread thread;
};

void cache_tell(const struct cache_observer *observer, const char *doing, uint64_t done,
                uint64_t total, uint64_t start_ns)
{
    const struct cache_progress progress = {
        .doing = doing, .done = done, .total = total, .elapsed_ns = clock_now_ns() - start_ns};

    if (observer && observer->progress)
        observer->progress(observer->context, &progress);
}

bool cache_tell_step(void *context)
{
    const struct cache_step *step = context;

    cache_tell(step->observer, step->doing, 0, 0, step->start_ns);
    return false;
}

/* Worker n takes files n, n + count, ...: neighbours in a folder share its cold metadata. */
static int work(void *argument)
{
    struct crew_worker *worker = argument;
    struct crew *crew = worker->crew;
    const struct crew_task *task = crew->task;
    int code = 0;

    for (size_t i = worker->number; i < task->count && code >= 0 && !flag_get(&crew->stop);
         i += crew->worker_count) {
        code = task->each(task->context, worker->number, task->paths[i]);
        counter_add(&crew->done, 1);
    }
    if (code < 0)
        flag_set(&crew->stop);
    counter_add(&crew->ended, 1);
    return code;
}

static int wait_for(struct crew *crew, uint64_t start_ns)
{
    const struct crew_task *task = crew->task;
    uint64_t told_ns = start_ns, pause_ns = 20000;

    while (counter_get(&crew->ended) < crew->worker_count) {
        clock_sleep_ns(pause_ns);
        if (pause_ns < 5000000)
            pause_ns *= 2;
        uint64_t now_ns = clock_now_ns();
        if (now_ns - told_ns >= 100000000) {
            told_ns = now_ns;
            cache_tell(task->observer, task->doing, counter_get(&crew->done), task->count,
                       start_ns);
        }
        if (task->timeout_ns && now_ns - start_ns > task->timeout_ns && !flag_get(&crew->stop)) {
            flag_set(&crew->stop);
            return fail(ETIMEDOUT, "%s: not done after %.0f s (%llu of %zu files); allow more time",
                        task->doing, (double)task->timeout_ns / 1e9,
                        (unsigned long long)counter_get(&crew->done), task->count);
        }
    }
    return 0;
}

int crew_run(const struct crew_task *task)
{
    struct crew crew = {.task = task};
    struct crew_worker workers[CREW_THREADS];
    const uint64_t start_ns = clock_now_ns();
    const size_t useful = task->count / FILES_A_THREAD + 1;
    unsigned started = 0;
    int code = 0;

    crew.worker_count = useful < CREW_THREADS ? (unsigned)useful : CREW_THREADS;
    for (; started < crew.worker_count && code == 0; started++) {
        workers[started] = (struct crew_worker){.crew = &crew, .number = started};
        code = thread_start(&workers[started].thread, "cachectl", work, &workers[started]);
    }
    if (code)
        flag_set(&crew.stop);
    else
        code = wait_for(&crew, start_ns);
    for (unsigned i = 0; i < started; i++) {
        int ended = thread_join(&workers[i].thread);
        if (code == 0 && ended < 0)
            code = ended;
    }
    return code;
}
