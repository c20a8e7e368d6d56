/* SPDX-License-Identifier: Apache-2.0
 *
 * queue: a bounded queue of values of one size, any number of producers and consumers.
 *
 * It records how long consumers waited, the only measure of which stage is the bottleneck. Moving
 * many entries costs one lock. Cancelling wakes everybody: pushes and pops then return -ECANCELED
 * at once.
 */
#ifndef IOBENCH_BASE_QUEUE_H
#define IOBENCH_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
