/* SPDX-License-Identifier: Apache-2.0 */
#include "base/queue.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/stall.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Invariant: entries[head .. head + count) modulo capacity are queued. */
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    uint32_t capacity, head, count;
    struct stall pop, push; /* waiters are counted to avoid needless signals */
    bool woken, closed, cancelled;
    size_t entry_bytes;
    char entries[];
};

struct queue *queue_create(uint32_t capacity, size_t entry_bytes)
{
    struct queue *queue = memory_zeroed(sizeof *queue + capacity * entry_bytes);

    assert(capacity > 0);
    if (!queue)
        return NULL;
    pthread_mutex_init(&queue->lock, NULL);
    thread_condition_init(&queue->not_empty);
    pthread_cond_init(&queue->not_full, NULL);
    queue->capacity = capacity;
    queue->entry_bytes = entry_bytes;
    return queue;
}

void queue_destroy(struct queue *queue)
{
    if (!queue)
        return;
    pthread_cond_destroy(&queue->not_full);
    pthread_cond_destroy(&queue->not_empty);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

#define FOR_EVER UINT64_MAX

/* Returns the time. until_ns: CLOCK_MONOTONIC, or FOR_EVER. */
static uint64_t wait_counted(struct queue *queue, pthread_cond_t *condition, struct stall *stall,
                             uint64_t until_ns)
{
    stall_begin(stall, clock_now_ns());
    if (until_ns == FOR_EVER)
        pthread_cond_wait(condition, &queue->lock);
    else
        thread_condition_wait(condition, &queue->lock, until_ns);
    uint64_t now = clock_now_ns();
    stall_end(stall, now);
    return now;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Wake waiting poppers of entries that were pushed, after the lock is released: a thread woken
 * under it would only wait for the lock. */
static void wake_poppers(struct queue *queue, uint32_t pushed, uint64_t waiters)
{
    if (waiters > 1 && pushed > 1)
        pthread_cond_broadcast(&queue->not_empty);
    else if (waiters > 0 && pushed > 0)
        pthread_cond_signal(&queue->not_empty);
}

int queue_push_many(struct queue *queue, const void *entries, uint32_t count)
{
    const char *next = entries;
    uint32_t pushed = 0;
    int result = 0;

    pthread_mutex_lock(&queue->lock);
    while (count > 0) {
        while (queue->count == queue->capacity && !queue->cancelled) {
            wake_poppers(queue, pushed, queue->pop.waiters); /* they make room */
            pushed = 0;
            wait_counted(queue, &queue->not_full, &queue->push, FOR_EVER);
        }
        if (queue->cancelled) {
            result = -ECANCELED;
            break;
        }
        /* Append those for which there is room: up to the end of the array, then from its start. */
        const uint32_t some = smaller(count, queue->capacity - queue->count);
        const uint32_t end = queue->head + queue->count,
                       tail = end < queue->capacity ? end : end - queue->capacity;
        const uint32_t first = smaller(some, queue->capacity - tail);
        const size_t bytes = queue->entry_bytes;
        memcpy(queue->entries + tail * bytes, next, first * bytes);
        memcpy(queue->entries, next + first * bytes, (some - first) * bytes);
        queue->count += some;
        assert(queue->count <= queue->capacity);
        next += some * queue->entry_bytes;
        count -= some;
        pushed += some;
    }
    const uint64_t waiters = queue->pop.waiters;
    pthread_mutex_unlock(&queue->lock);
    wake_poppers(queue, pushed, waiters);
    return result;
}

int queue_push(struct queue *queue, const void *entry)
{
    return queue_push_many(queue, entry, 1);
}

static int pop_until(struct queue *queue, void *entries, uint32_t max, uint64_t now_ns,
                     uint64_t until_ns)
{
    int popped = 0;

    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && now_ns < until_ns && !queue->woken && !queue->closed &&
           !queue->cancelled)
        now_ns = wait_counted(queue, &queue->not_empty, &queue->pop, until_ns);
    queue->woken = false;
    if (queue->cancelled) {
        popped = -ECANCELED;
    } else {
        const uint32_t some = smaller(max, queue->count),
                       first = smaller(some, queue->capacity - queue->head);
        const size_t bytes = queue->entry_bytes;
        memcpy(entries, queue->entries + queue->head * bytes, first * bytes);
        memcpy((char *)entries + first * bytes, queue->entries, (some - first) * bytes);
        queue->head = some < queue->capacity - queue->head ? queue->head + some : some - first;
        queue->count -= some;
        assert(queue->head < queue->capacity);
        popped = (int)some;
        if (popped > 0 && queue->push.waiters > 0)
            pthread_cond_broadcast(&queue->not_full);
        /* One signal may have covered several entries. */
        if (queue->count > 0 && queue->pop.waiters > 0)
            pthread_cond_signal(&queue->not_empty);
    }
    pthread_mutex_unlock(&queue->lock);
    return popped;
}

int queue_pop_many(struct queue *queue, void *entries, uint32_t max, bool wait)
{
    return pop_until(queue, entries, max, 0, wait ? FOR_EVER : 0);
}

int queue_pop_within(struct queue *queue, void *entries, uint32_t max, uint64_t wait_ns)
{
    uint64_t now_ns = wait_ns ? clock_now_ns() : 0;

    return pop_until(queue, entries, max, now_ns,
                     wait_ns < FOR_EVER - now_ns ? now_ns + wait_ns : FOR_EVER);
}

static void set_and_wake(struct queue *queue, bool *mark)
{
    pthread_mutex_lock(&queue->lock);
    *mark = true;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_cond_broadcast(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
}

void queue_wake(struct queue *queue)
{
    set_and_wake(queue, &queue->woken);
}

void queue_close(struct queue *queue)
{
    set_and_wake(queue, &queue->closed);
}

bool queue_is_drained(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const bool is_drained = queue->closed && queue->count == 0;
    pthread_mutex_unlock(&queue->lock);
    return is_drained;
}

bool queue_is_full(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const bool is_full = queue->count == queue->capacity;
    pthread_mutex_unlock(&queue->lock);
    return is_full;
}

void queue_cancel(struct queue *queue)
{
    set_and_wake(queue, &queue->cancelled);
}

void queue_reset(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->head = queue->count = 0;
    queue->woken = queue->closed = queue->cancelled = false;
    queue->push = queue->pop = (struct stall){0};
    pthread_mutex_unlock(&queue->lock);
}

uint64_t queue_wait_ns(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const uint64_t wait_ns = stall_ns(&queue->pop, clock_now_ns());
    pthread_mutex_unlock(&queue->lock);
    return wait_ns;
}
