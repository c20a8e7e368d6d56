/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer: a shuffle buffer over any input: fill it, then repeatedly draw a random held record and
 * fetch the next one into its place. Knows neither records nor partitions.
 *
 * Two parameters: the first draw happens when `initial` records are held; while fewer than
 * `capacity` are held, each draw is followed by two fetches, else by one. tf.data and DALI use
 * initial = capacity; WebDataset uses a smaller one, so its buffer grows while it is drawn from.
 */
#ifndef IOBENCH_SHUFFLE_BUFFER_H
#define IOBENCH_SHUFFLE_BUFFER_H

#include "base/random.h"
#include "shuffle/plan.h"

struct buffer {
    uint32_t capacity, initial;
    uint32_t *slots; /* a permutation: the first `held` names hold records, the others are free */
    uint32_t held;
    uint32_t due;  /* fetches needed before the next draw */
    uint64_t left; /* inputs left */
    struct random random;
};

/* Each rank has its own buffer, so the order depends on the number of ranks. */
int buffer_refuse_elastic(const struct plan_scope *scope);

/* inputs_max: of any epoch; a larger buffer would never fill. Adds to traits. */
int buffer_open(struct buffer *buffer, const struct plan_scope *scope, uint64_t capacity,
                uint64_t initial, uint64_t inputs_max, struct plan_traits *traits);
void buffer_close(struct buffer *buffer);
void buffer_begin(struct buffer *buffer, uint64_t seed, uint64_t inputs);

/* input(context) returns the next input record; called as many times as begin() was given. */
int buffer_next(struct buffer *buffer, uint64_t (*input)(void *context), void *context,
                struct plan_op *ops, uint32_t max);

#endif
