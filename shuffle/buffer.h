/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer: a shuffle buffer over any input: fill it, then again and again draw one of those held
 * at random and fetch the next into its place. It knows neither records nor partitions.
 *
 * The rule has two numbers. The first draw comes when `initial` records are held; while fewer
 * than `capacity` are held, each draw is followed by two fetches, else by one. initial equal to
 * capacity is the buffer of tf.data and DALI; a smaller one is WebDataset's, which grows as it
 * is drawn from.
 */
#ifndef IOBENCH_SHUFFLE_BUFFER_H
#define IOBENCH_SHUFFLE_BUFFER_H

#include "base/random.h"
#include "shuffle/plan.h"

struct buffer {
    uint32_t capacity, initial;
    uint32_t *slots; /* a permutation: the first `held` names hold records, the others are free */
    uint32_t held;
    uint32_t due;  /* fetches before the next draw */
    uint64_t left; /* inputs still to come */
    struct random random;
};

/* A buffer belongs to one rank, so what it yields depends on the number of ranks. */
int buffer_refuse_elastic(const struct plan_scope *scope);

/* inputs_max: of any epoch; a larger buffer would never fill. Adds to traits. */
int buffer_open(struct buffer *buffer, const struct plan_scope *scope, uint64_t capacity,
                uint64_t initial, uint64_t inputs_max, struct plan_traits *traits);
void buffer_close(struct buffer *buffer);
void buffer_begin(struct buffer *buffer, uint64_t seed, uint64_t inputs);

/* input(context) gives the next input record; it is called as often as begin() said. */
int buffer_next(struct buffer *buffer, uint64_t (*input)(void *context), void *context,
                struct plan_op *ops, uint32_t max);

#endif
