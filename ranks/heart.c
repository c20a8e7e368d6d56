/* SPDX-License-Identifier: Apache-2.0
 *
 * The heart: a thread that sends heartbeats while the main thread computes, as in one step of
 * minutes, which calls nobody. It vouches for that thread alone, by its CPU time: one that blocks,
 * on a dead disk say, spends none, and sends heartbeats only if it wakes to send them itself.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"
#include "ranks/ranks.h"
#include "ranks/words.h"

#include <errno.h>
#include <stdlib.h>

struct ranks_heart {
    struct ranks *ranks;
    struct thread thread;
    pthread_t vouched; /* the main thread */
    pthread_mutex_t lock;
    pthread_cond_t stops;
    bool is_stopped;
    uint32_t users; /* jobs that take turns */
};

static bool wait_for_beat(struct ranks_heart *heart, uint64_t until_ns)
{
    bool more = true;

    pthread_mutex_lock(&heart->lock);
    while (!heart->is_stopped && more)
        more = thread_condition_wait(&heart->stops, &heart->lock, until_ns);
    more = !heart->is_stopped;
    pthread_mutex_unlock(&heart->lock);
    return more;
}

static int beat(void *argument)
{
    struct ranks_heart *heart = argument;
    uint64_t before_ns = clock_cpu_of_ns(heart->vouched);

    while (wait_for_beat(heart, clock_now_ns() + RANKS_SIGN_NS)) {
        const uint64_t cpu_ns = clock_cpu_of_ns(heart->vouched);
        if (cpu_ns > before_ns)
            ranks_send_word(heart->ranks, word_of(0, WORD_LIVES));
        before_ns = cpu_ns;
    }
    return 0;
}

int ranks_heart_start(struct ranks *ranks)
{
    if (!ranks_may_share(ranks))
        return 0;
    if (ranks->heart) {
        ranks->heart->users++;
        return 0;
    }
    struct ranks_heart *heart = memory_zeroed(sizeof *heart);
    if (!heart)
        return -ENOMEM;
    heart->users = 1;
    heart->ranks = ranks;
    heart->vouched = pthread_self();
    pthread_mutex_init(&heart->lock, NULL);
    thread_condition_init(&heart->stops);
    ranks->heart = heart;
    return thread_start(&heart->thread, "heart", beat, heart);
}

void ranks_heart_stop(struct ranks *ranks)
{
    struct ranks_heart *heart = ranks->heart;

    if (!heart || --heart->users)
        return;
    pthread_mutex_lock(&heart->lock);
    heart->is_stopped = true;
    pthread_cond_signal(&heart->stops);
    pthread_mutex_unlock(&heart->lock);
    thread_join(&heart->thread);
    pthread_cond_destroy(&heart->stops);
    pthread_mutex_destroy(&heart->lock);
    free(heart);
    ranks->heart = NULL;
}
