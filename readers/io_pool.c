/* SPDX-License-Identifier: Apache-2.0
 *
 *     free --submit--> waiting (in an inbox) --thread--> running --> done --reap--> free
 *                         | timed out: reaped              | timed out: reaped as held, abandoned
 *
 * The lock guards the lists and the handles. All threads share one inbox; with in_order each has
 * its own, and an open shard belongs to one of them. Wake-ups dominate the cost on few cores, so
 * reap() wakes the threads once for everything submitted, and they wake reap() once per SOON_NS.
 * The kernel cannot be made to give up a read that never ends: its thread, and with it the pool's
 * memory, is left behind. */
#include "readers/io_pool.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { LOOKS_PER_TIMEOUT = 8 };
static const uint64_t SOON_NS = 50000, WAIT_MOST_NS = 10000000;

struct task_list {
    struct io_task *first, *last;
};

struct inbox {
    struct task_list waiting;
    uint32_t fresh; /* submitted since the last reap: no thread was woken for them yet */
    pthread_cond_t more;
};

struct io_worker {
    struct io_pool *pool;
    struct inbox *inbox;
    struct thread thread;
};

struct io_pool {
    struct handles handles;
    struct io_pool_settings settings;
    uint64_t timeout_ns;
    uint32_t thread_count, inbox_count;
    struct io_worker *workers;
    struct inbox *inboxes;
    uint32_t task_count;
    struct io_task *tasks;
    struct io_task *free_tasks;
    uint32_t abandoned;

    pthread_mutex_t lock;
    pthread_cond_t finished; /* for reap */
    struct task_list done;
    bool reaper_waits, woken, ended;
    uint64_t woken_ns; /* when reap was last woken */
    uint64_t look_ns;  /* when to check for late tasks next */
};

static void list_push(struct task_list *list, struct io_task *task)
{
    task->next = NULL;
    if (list->last)
        list->last->next = task;
    else
        list->first = task;
    list->last = task;
}

static struct io_task *list_pop(struct task_list *list)
{
    struct io_task *task = list->first;

    if (task) {
        list->first = task->next;
        if (!list->first)
            list->last = NULL;
    }
    return task;
}

static int io_pool_thread(void *argument)
{
    struct io_worker *worker = argument;
    struct io_pool *pool = worker->pool;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct io_task *task = list_pop(&worker->inbox->waiting);
        if (!task && pool->ended)
            break;
        if (!task) {
            pthread_cond_wait(&worker->inbox->more, &pool->lock);
            continue;
        }
        task->running = true;
        pthread_mutex_unlock(&pool->lock);
        task->result = handle_open(&pool->handles, task->handle);
        if (task->result == 0)
            pool->settings.work(task);
        pthread_mutex_lock(&pool->lock);
        task->running = false;
        list_push(&pool->done, task);
        if (!pool->reaper_waits)
            continue;
        /* A thread with more to do delays the wake-up, but not for long. */
        const uint64_t now_ns = clock_now_ns();
        if (worker->inbox->waiting.first && now_ns - pool->woken_ns < SOON_NS)
            continue;
        pool->woken_ns = now_ns;
        pthread_cond_signal(&pool->finished);
    }
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

int io_pool_create(struct io_pool **created, const struct io_pool_settings *settings,
                   uint32_t *alignment)
{
    const struct reader_config *config = settings->config;
    const uint32_t depth = config->depth;
    struct io_pool *pool = memory_zeroed(sizeof *pool);

    *created = pool;
    if (!pool)
        return -ENOMEM;
    assert(depth > 0 && settings->work);
    pool->settings = *settings;
    pool->thread_count = settings->threads && settings->threads < depth ? settings->threads : depth;
    pool->inbox_count = settings->in_order ? pool->thread_count : 1;
    pthread_mutex_init(&pool->lock, NULL);
    thread_condition_init(&pool->finished);
    int code =
        handles_create(&pool->handles, config->catalog, settings->flags | HANDLES_SHARED,
                       settings->handles_most ? settings->handles_most : depth, settings->files);
    *alignment = pool->handles.alignment;
    if (code)
        return code;
    pool->handles.forget = settings->forget;
    pool->timeout_ns = config->timeout_ns;
    pool->task_count = depth;
    pool->tasks = memory_array(depth, sizeof *pool->tasks);
    pool->workers = memory_array(pool->thread_count, sizeof *pool->workers);
    pool->inboxes = memory_array(pool->inbox_count, sizeof *pool->inboxes);
    if (!pool->tasks || !pool->workers || !pool->inboxes)
        return -ENOMEM;
    for (uint32_t i = 0; i < pool->inbox_count; i++)
        pthread_cond_init(&pool->inboxes[i].more, NULL);
    for (uint32_t i = depth; i-- > 0;) {
        pool->tasks[i].next = pool->free_tasks;
        pool->free_tasks = &pool->tasks[i];
    }
    for (uint32_t i = 0; code == 0 && i < pool->thread_count; i++) {
        struct io_worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->inbox = &pool->inboxes[i % pool->inbox_count];
        code = thread_start(&worker->thread, "read", io_pool_thread, worker);
    }
    return code;
}

uint32_t io_pool_threads(const struct io_pool *pool)
{
    return pool->thread_count;
}

void io_pool_destroy(struct io_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ended = true;
    for (uint32_t i = 0; pool->inboxes && i < pool->inbox_count; i++)
        pthread_cond_broadcast(&pool->inboxes[i].more);
    uint32_t abandoned = pool->abandoned;
    pthread_mutex_unlock(&pool->lock);
    if (abandoned) {
        catalog_keep(pool->handles.catalog); /* its threads still use them */
        memory_keep(pool);
        return;
    }
    for (uint32_t i = 0; pool->workers && i < pool->thread_count; i++)
        thread_join(&pool->workers[i].thread);
    for (uint32_t i = 0; pool->inboxes && i < pool->inbox_count; i++)
        pthread_cond_destroy(&pool->inboxes[i].more);
    handles_destroy(&pool->handles);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool->inboxes);
    free(pool->tasks);
    free(pool);
}

int io_pool_submit(void *state, struct read_request *request)
{
    struct io_pool *pool = *(struct io_pool **)state;
    struct io_task *task = pool->free_tasks;

    if (!task && pool->abandoned == pool->task_count)
        return fail(ETIMEDOUT, "storage not responding: the last %u reads timed out",
                    pool->abandoned);
    pthread_mutex_lock(&pool->lock);
    struct handle *handle = task ? handles_acquire(&pool->handles, request->shard) : NULL;
    pthread_mutex_unlock(&pool->lock);
    if (!handle)
        return -EAGAIN;
    assert(!task->request && !task->running);
    pool->free_tasks = task->next;
    *task = (struct io_task){
        .handles = &pool->handles,
        .handle = handle,
        .offset = request->offset,
        .bytes = request->bytes,
        .needed = request->needed,
        .buffer = request->buffer,
        .parts = request->parts,
        .part_count = request->part_count,
        .request = request,
        .submit_ns = request->submit_ns,
    };
    bool is_done = pool->settings.at_once && handle_is_fresh(handle) &&
                   pool->settings.at_once(pool->settings.state, task);
    struct inbox *inbox = &pool->inboxes[(handle - pool->handles.all) % pool->inbox_count];
    pthread_mutex_lock(&pool->lock);
    list_push(is_done ? &pool->done : &inbox->waiting, task);
    inbox->fresh += !is_done;
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

static void free_task(struct io_pool *pool, struct io_task *task)
{
    task->request = NULL;
    task->next = pool->free_tasks;
    pool->free_tasks = task;
}

/* Under the lock. Drops late results of abandoned tasks. */
static uint32_t take_done(struct io_pool *pool, struct read_request **done, uint32_t max)
{
    uint32_t count = 0;
    struct io_task *task;

    while (count < max && (task = list_pop(&pool->done))) {
        struct read_request *request = task->request;
        if (task->abandoned) {
            assert(pool->abandoned > 0);
            pool->abandoned--;
            handles_release(&pool->handles, task->handle);
            free_task(pool, task);
            continue;
        }
        request->result = task->result;
        request->short_reads = task->short_reads;
        request->data = task->data;
        request->mapping = task->handle;
        if (!task->borrowed || task->result < 0)
            handles_release(&pool->handles, task->handle);
        free_task(pool, task);
        done[count++] = request;
    }
    return count;
}

/* Under the lock. A late task that waits for a thread is simply removed; one that a thread is
 * running is abandoned, its buffer held. */
static uint32_t take_late(struct io_pool *pool, struct read_request **done, uint32_t max)
{
    const uint64_t now_ns = clock_now_ns();
    uint32_t count = 0;

    if (!pool->timeout_ns || now_ns < pool->look_ns)
        return 0;
    pool->look_ns = now_ns + pool->timeout_ns / LOOKS_PER_TIMEOUT;
    for (uint32_t i = 0; i < pool->inbox_count; i++) {
        struct task_list *waiting = &pool->inboxes[i].waiting;
        while (count < max && waiting->first &&
               now_ns - waiting->first->submit_ns > pool->timeout_ns) {
            struct io_task *task = list_pop(waiting);
            task->request->result = -ETIMEDOUT;
            done[count++] = task->request;
            handles_release(&pool->handles, task->handle);
            free_task(pool, task);
        }
    }
    for (uint32_t i = 0; i < pool->task_count && count < max; i++) {
        struct io_task *task = &pool->tasks[i];
        if (!task->running || task->abandoned || now_ns - task->submit_ns <= pool->timeout_ns)
            continue;
        task->abandoned = true;
        pool->abandoned++;
        task->request->result = -ETIMEDOUT;
        task->request->held = true;
        done[count++] = task->request;
    }
    return count;
}

int io_pool_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct io_pool *pool = *(struct io_pool **)state;
    uint64_t until_ns = wait_ns ? clock_now_ns() + wait_ns : 0, now_ns;
    uint32_t count;

    if (until_ns < wait_ns)
        until_ns = UINT64_MAX / 2;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->inbox_count; i++) { /* wake threads for what was submitted */
        struct inbox *inbox = &pool->inboxes[i];
        const uint32_t threads = pool->thread_count / pool->inbox_count;
        uint32_t woken = inbox->fresh < threads ? inbox->fresh : threads;
        for (inbox->fresh = 0; woken > 0; woken--)
            pthread_cond_signal(&inbox->more);
    }
    for (;;) {
        count = take_done(pool, done, max);
        count += take_late(pool, done + count, max - count);
        if (count || pool->woken || (now_ns = clock_now_ns()) >= until_ns)
            break;
        /* Until a task is done, until_ns, or the next check for late tasks, but not long: a thread
         * that now hangs may have delayed the wake-up for its previous task. */
        uint64_t next_ns = now_ns + WAIT_MOST_NS < until_ns ? now_ns + WAIT_MOST_NS : until_ns;
        if (pool->timeout_ns && pool->look_ns < next_ns)
            next_ns = pool->look_ns;
        pool->reaper_waits = true;
        thread_condition_wait(&pool->finished, &pool->lock, next_ns);
        pool->reaper_waits = false;
    }
    pool->woken = false;
    pthread_mutex_unlock(&pool->lock);
    return (int)count;
}

void io_pool_release(void *state, struct read_request *request)
{
    struct io_pool *pool = *(struct io_pool **)state;

    pthread_mutex_lock(&pool->lock);
    handles_release(&pool->handles, request->mapping);
    pthread_mutex_unlock(&pool->lock);
}

void io_pool_wake(void *state)
{
    struct io_pool *pool = *(struct io_pool **)state;

    pthread_mutex_lock(&pool->lock);
    pool->woken = true;
    if (pool->reaper_waits)
        pthread_cond_signal(&pool->finished);
    pthread_mutex_unlock(&pool->lock);
}
