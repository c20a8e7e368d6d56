/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/control_group.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* ---- workers ---- */

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

/* ---- queue ---- */

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

int queue_pop_many(struct queue *queue, void *entries, uint32_t max, bool wait)
{
    return queue_pop_within(queue, entries, max, wait ? FOR_EVER : 0);
}

int queue_pop_within(struct queue *queue, void *entries, uint32_t max, uint64_t wait_ns)
{
    uint64_t now_ns = wait_ns && wait_ns != FOR_EVER ? clock_now_ns() : 0;
    const uint64_t until_ns = wait_ns < FOR_EVER - now_ns ? now_ns + wait_ns : FOR_EVER;
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

/* ---- numa ---- */

/* Parse "0-3,8,10-11"; sets[i] for each number below `most`. Returns false if the file is
 * missing. */
static bool read_list(const char *sys, const char *name, bool *set, unsigned most)
{
    char path[512];
    unsigned first, last;

    memset(set, 0, most * sizeof *set);
    snprintf(path, sizeof path, "%s/devices/system/node/%s", sys, name);
    FILE *file = file_stream_kernel(path);
    if (!file)
        return false;
    while (fscanf(file, "%u", &first) == 1) {
        int next = fgetc(file);
        last = first;
        if (next == '-') {
            if (fscanf(file, "%u", &last) != 1)
                break;
            next = fgetc(file);
        }
        for (unsigned i = first; i <= last && i < most; i++)
            set[i] = true;
        if (next != ',')
            break;
    }
    fclose(file);
    return true;
}

/* Find the node's CPUs that this thread may use. Returns false if there are none. */
static bool cpus_of(const char *sys, int node, cpu_set_t *cpus)
{
    bool list[CPU_SETSIZE];
    char name[32];
    cpu_set_t allowed;

    CPU_ZERO(cpus);
    snprintf(name, sizeof name, "node%d/cpulist", node);
    if (!read_list(sys, name, list, CPU_SETSIZE) || sched_getaffinity(0, sizeof allowed, &allowed))
        return false;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (list[cpu] && CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, cpus);
    return CPU_COUNT(cpus) > 0;
}

void numa_find(struct numa *numa, const char *sys)
{
    bool with_memory[NUMA_NODES_MOST];
    cpu_set_t cpus;

    *numa = (struct numa){.sys = sys};
    if (read_list(sys, "has_memory", with_memory, NUMA_NODES_MOST))
        for (int node = 0; node < NUMA_NODES_MOST && numa->count < NUMA_NODES; node++)
            if (with_memory[node] && cpus_of(sys, node, &cpus))
                numa->nodes[numa->count++] = node;
    if (numa->count == 0)
        numa->count = 1;
}

void numa_run_on(const struct numa *numa, uint32_t index)
{
    cpu_set_t cpus;

    assert(index < numa->count);
    if (numa->count > 1 && cpus_of(numa->sys, numa->nodes[index], &cpus))
        sched_setaffinity(0, sizeof cpus, &cpus);
}

struct numa_policy numa_prefer(const struct numa *numa, uint32_t index)
{
    const unsigned long bits = 8 * sizeof(unsigned long);
    struct numa_policy before = {.mode = -1};
    unsigned long nodes[NUMA_NODES_MOST / (8 * sizeof(unsigned long))] = {0};

    assert(index < numa->count);
    if (numa->count < 2 ||
        syscall(SYS_get_mempolicy, &before.mode, before.nodes, NUMA_NODES_MOST, NULL, 0))
        return (struct numa_policy){.mode = -1};
    unsigned long node = (unsigned long)numa->nodes[index];
    nodes[node / bits] = 1UL << node % bits;
    /* Fails if a cpuset excludes the node: then memory comes from elsewhere. */
    syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, NUMA_NODES_MOST);
    return before;
}

void numa_put_back(const struct numa_policy *policy)
{
    if (policy->mode >= 0)
        syscall(SYS_set_mempolicy, policy->mode, policy->nodes, NUMA_NODES_MOST);
}
