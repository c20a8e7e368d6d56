/* SPDX-License-Identifier: Apache-2.0
 *
 * queue: a bounded queue of pointers between threads, many producers and many consumers.
 *
 * It records how long each side waited: that wait is the answer to "which stage limits", and
 * nobody measures it again. Moving many at once costs one lock. A cancelled queue wakes
 * everybody: pushes and pops then return -ECANCELED at once.
 */
#ifndef IOBENCH_BASE_QUEUE_H
#define IOBENCH_BASE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct queue;

struct queue_waits {
    uint64_t push_wait_ns; /* producers waited because it was full, summed over threads */
    uint64_t pop_wait_ns;  /* consumers waited because it was empty, summed over threads */
    /* both until now: waits that go on are counted */
};

/* capacity in entries, at least 1. NULL with a reason when memory is short. */
struct queue *queue_create(uint32_t capacity);
void queue_destroy(struct queue *queue);

/* Push all count entries in order, waiting while full. 0 or -ECANCELED. */
int queue_push_many(struct queue *queue, void *const *entries, uint32_t count);
int queue_push(struct queue *queue, void *entry);

/* Pop 1..max entries; waits for the first unless wait is false.
 * Returns the count; 0 when closed and empty (or empty and !wait); -ECANCELED. */
int queue_pop_many(struct queue *queue, void **entries, uint32_t max, bool wait);
/* The same, but waits for at most wait_ns: then 0. */
int queue_pop_within(struct queue *queue, void **entries, uint32_t max, uint64_t wait_ns);

/* Makes the pop that waits now return 0, else the next one not wait. For one consumer. */
void queue_wake(struct queue *queue);

/* No more pushes come: consumers drain what is left, then get 0. */
void queue_close(struct queue *queue);
void queue_cancel(struct queue *queue);

/* Empty, open, waits forgotten. Only when no thread uses it. */
void queue_reset(struct queue *queue);

struct queue_waits queue_waits(struct queue *queue);

#endif
