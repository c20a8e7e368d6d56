/* SPDX-License-Identifier: Apache-2.0
 *
 * thread: a thread with one role. If its body fails, the reason is passed to the thread that joins
 * it. Also what threads share: a job, queues, waits that are measured, NUMA nodes.
 */
#ifndef IOBENCH_BASE_THREAD_H
#define IOBENCH_BASE_THREAD_H

#include "base/clock.h"
#include "base/fail.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct thread {
    pthread_t handle;
    bool started;
    int (*body)(void *argument);
    void *argument;
    int code;
    char reason[FAIL_REASON_BYTES];
};

/* name: shown by ps and gdb, at most 15 bytes. Returns 0 or a negative errno with a reason. */
int thread_start(struct thread *thread, const char *name, int (*body)(void *), void *argument);

/* Wait for the thread and return its body's code; on failure its reason becomes this thread's.
 * Returns 0 for a thread never started. */
int thread_join(struct thread *thread);

/* Join one of several threads; first: what those before returned. Returns the first failure that is
 * not -ECANCELED, with its reason, else -ECANCELED or 0. */
int thread_join_next(struct thread *thread, int first);

/* A condition whose waits end at a time of clock_now_ns(), whatever happens to the wall clock. */
void thread_condition_init(pthread_cond_t *condition);
/* Returns false once it is until_ns. */
bool thread_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);

/* Return the CPUs this process may use, cgroup quota included; at least 1. */
unsigned thread_cpu_count(void);

/* ---- workers ----
 *
 * Several threads on one job, while the caller's thread reports progress. */

struct workers;

struct workers_job {
    const char *name; /* of the threads */
    /* Called on each thread; `number` counts them from 0. Returns 0 or a negative errno. */
    int (*work)(void *context, struct workers *workers, uint64_t number);
    /* Make the other threads return soon, because one failed. Any thread; may be called
     * repeatedly. NULL: they return soon anyway. */
    void (*stop)(void *context);
    /* Called on the caller's thread every 100 ms, when woken, and at the end; a non-zero result is
     * a failure. May be NULL. */
    int (*tick)(void *context);
    void *context;
};

/* Run the job on `count` threads until all have returned. Returns 0, or the first failure in time
 * with its reason. */
int workers_run(const struct workers_job *job, uint64_t count);
/* Ask for a tick now. From a worker. */
void workers_wake(struct workers *workers);

/* ---- queue ----
 *
 * A bounded queue of values of one size, any number of producers and consumers.
 *
 * It records how long consumers waited, the only measure of which stage is the bottleneck. Moving
 * many entries costs one lock. Cancelling wakes everybody: pushes and pops then return -ECANCELED
 * at once. */

struct queue;

/* capacity: entries, at least 1. Returns NULL with a reason. */
struct queue *queue_create(uint32_t capacity, size_t entry_bytes);
void queue_destroy(struct queue *queue);

/* Push all `count` entries in order, waiting while full. Returns 0 or -ECANCELED. */
int queue_push_many(struct queue *queue, const void *entries, uint32_t count);
int queue_push(struct queue *queue, const void *entry);

/* Pop 1 to max entries; waits for the first unless `wait` is false. Returns the count; 0 if closed
 * and empty (or empty and !wait); -ECANCELED. */
int queue_pop_many(struct queue *queue, void *entries, uint32_t max, bool wait);
/* The same, waiting at most wait_ns, then returning 0. */
int queue_pop_within(struct queue *queue, void *entries, uint32_t max, uint64_t wait_ns);

/* Make the waiting pop return 0, or keep the next one from waiting. For one consumer. */
void queue_wake(struct queue *queue);

/* No more pushes will come: consumers drain the rest, then get 0. */
void queue_close(struct queue *queue);
/* Closed and empty: a pop that returned 0 was not only short of time. */
bool queue_is_drained(struct queue *queue);
void queue_cancel(struct queue *queue);
/* A push of one entry would wait. */
bool queue_is_full(struct queue *queue);

/* Empty and reopen it, and clear the waits. Only while no thread uses it. */
void queue_reset(struct queue *queue);

/* Return how long consumers waited while it was empty, summed over threads, ongoing waits included.
 */
uint64_t queue_wait_ns(struct queue *queue);

/* ---- stall ----
 *
 * How long threads waited at one place, exact at any moment: ongoing waits count up to now. The
 * share of a window is the difference of two readings, so it never exceeds the window times the
 * threads. Guarded by the lock of that place, under which now_ns never decreases. */

struct stall {
    uint64_t sum_ns; /* of ended waits, minus the starts of ongoing ones; modulo 2^64 */
    uint64_t waiters;
};

static inline void stall_begin(struct stall *stall, uint64_t now_ns)
{
    stall->sum_ns -= now_ns;
    stall->waiters++;
}

static inline void stall_end(struct stall *stall, uint64_t now_ns)
{
    assert(stall->waiters > 0);
    stall->sum_ns += now_ns;
    stall->waiters--;
}

static inline uint64_t stall_ns(const struct stall *stall, uint64_t now_ns)
{
    return stall->sum_ns + stall->waiters * now_ns;
}

/* ---- numa ----
 *
 * The NUMA nodes that this process may run on, and binding threads and their memory to one. It
 * needs only two system calls and sysfs, hence no library. On machines with one node and kernels
 * without NUMA there is one node and nothing is bound. */

enum { NUMA_NODES = 64, NUMA_NODES_MOST = 1024 /* MAX_NUMNODES of the kernel */ };

struct numa {
    const char *sys; /* "/sys", or a copy of another machine's for tests */
    uint32_t count;  /* nodes with memory and CPUs that this thread may use; at least 1 */
    int nodes[NUMA_NODES];
};

/* Read the topology; keeps `sys`. */
void numa_find(struct numa *numa, const char *sys);

/* Bind this thread to the CPUs of nodes[index] that it may use. No-op with one node. */
void numa_run_on(const struct numa *numa, uint32_t index);

/* For memory that this thread touches first, prefer nodes[index], until the policy is restored.
 * No-op with one node. */
struct numa_policy {
    int mode; /* negative: nothing to restore */
    unsigned long nodes[NUMA_NODES_MOST / (8 * sizeof(unsigned long))];
};
struct numa_policy numa_prefer(const struct numa *numa, uint32_t index);
void numa_put_back(const struct numa_policy *policy);

#endif
