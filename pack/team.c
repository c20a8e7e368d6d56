/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/team.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TICK_NS = 100000000 };

struct team {
    const struct team_job *job;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    uint64_t running;
    bool woken;
};

void team_wake(struct team *team)
{
    pthread_mutex_lock(&team->lock);
    team->woken = true;
    pthread_cond_signal(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

static int run_member(void *argument)
{
    struct team *team = argument;
    int code = team->job->work(team->job->context, team);

    if (code)
        team->job->stop(team->job->context);
    pthread_mutex_lock(&team->lock);
    team->running--;
    pthread_cond_signal(&team->changed);
    pthread_mutex_unlock(&team->lock);
    return code;
}

static void watch(struct team *team)
{
    struct timespec until;

    pthread_mutex_lock(&team->lock);
    while (team->running > 0) {
        clock_gettime(CLOCK_REALTIME, &until);
        uint64_t ns = (uint64_t)until.tv_nsec + TICK_NS;
        until.tv_sec += (time_t)(ns / 1000000000);
        until.tv_nsec = (long)(ns % 1000000000);
        if (!team->woken)
            pthread_cond_timedwait(&team->changed, &team->lock, &until);
        team->woken = false;
        pthread_mutex_unlock(&team->lock);
        team->job->tick(team->job->context);
        pthread_mutex_lock(&team->lock);
    }
    pthread_mutex_unlock(&team->lock);
    team->job->tick(team->job->context);
}

int team_run(const struct team_job *job, uint64_t count)
{
    struct team team = {.job = job,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .running = count};
    struct thread *threads = memory_array(count + 1, sizeof *threads);
    char reason[FAIL_REASON_BYTES] = "";
    uint64_t started = 0;
    int code = 0;

    if (!threads)
        return -ENOMEM;
    while (started < count && code == 0) {
        code = thread_start(&threads[started], job->name, run_member, &team);
        started += code == 0;
    }
    if (code) {
        snprintf(reason, sizeof reason, "%s", fail_reason());
        job->stop(job->context);
        pthread_mutex_lock(&team.lock);
        team.running -= count - started;
        pthread_mutex_unlock(&team.lock);
    }
    watch(&team);
    for (uint64_t i = 0; i < started; i++) {
        int joined = thread_join(&threads[i]);
        if (joined && code == 0) {
            code = joined;
            snprintf(reason, sizeof reason, "%s", fail_reason());
        }
    }
    free(threads);
    return code ? fail(code, "%s", reason) : 0;
}
