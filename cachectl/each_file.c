/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/each_file.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>

enum { FILES_A_THREAD = 64 }; /* fewer files are not worth a thread */
enum { REPORT_EVERY_NS = 100000000 };

struct each_file {
    const struct each_file_task *task;
    uint64_t worker_count, start_ns, reported_ns;
    struct counter done;
    struct flag stop;
};

void cache_report(const struct cache_observer *observer, const char *doing, uint64_t done,
                  uint64_t total, uint64_t start_ns)
{
    const struct cache_progress progress = {
        .doing = doing, .done = done, .total = total, .elapsed_ns = clock_now_ns() - start_ns};

    if (observer && observer->progress)
        observer->progress(observer->context, &progress);
}

bool cache_report_step(void *context)
{
    const struct cache_step *step = context;

    cache_report(step->observer, step->doing, 0, 0, step->start_ns);
    return false;
}

/* Worker n takes files n, n + count, ...: adjacent files share their folder's cold metadata. */
static int work(void *context, struct workers *workers, uint64_t number)
{
    struct each_file *all = context;
    const struct each_file_task *task = all->task;
    int code = 0;

    assert(number < EACH_FILE_THREADS);
    (void)workers;
    for (size_t i = number; i < task->count && code >= 0 && !flag_get(&all->stop);
         i += all->worker_count) {
        code = task->each(task->context, (unsigned)number, i);
        counter_add(&all->done, 1);
    }
    return code < 0 ? code : 0;
}

static void stop(void *context)
{
    flag_set(&((struct each_file *)context)->stop);
}

static int watch(void *context)
{
    struct each_file *all = context;
    const struct each_file_task *task = all->task;
    const uint64_t now_ns = clock_now_ns(), done = counter_get(&all->done);

    if (now_ns - all->reported_ns >= REPORT_EVERY_NS) {
        all->reported_ns = now_ns;
        cache_report(task->observer, task->doing, done, task->count, all->start_ns);
    }
    if (done == task->count || flag_get(&all->stop) || !task->timeout_ns ||
        now_ns - all->start_ns <= task->timeout_ns)
        return 0;
    return fail(ETIMEDOUT, "%s: not done after %.0f s (%llu of %zu files); raise the time limit",
                task->doing, (double)task->timeout_ns / 1e9, (unsigned long long)done, task->count);
}

int each_file_run(const struct each_file_task *task)
{
    struct each_file all = {.task = task, .start_ns = clock_now_ns()};
    const struct workers_job job = {"cachectl", work, stop, watch, &all};

    all.reported_ns = all.start_ns;
    all.worker_count = task->count / FILES_A_THREAD + 1;
    if (all.worker_count > EACH_FILE_THREADS)
        all.worker_count = EACH_FILE_THREADS;
    return workers_run(&job, all.worker_count);
}
