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
#include "shuffle/sequence.h"

struct buffer {
    uint32_t capacity, initial;
    uint32_t *slots; /* a permutation: the first `held` names hold records, the others are free */
    uint32_t held;
    uint32_t due;  /* fetches needed before the next draw */
    uint64_t left; /* inputs left */
    struct random random;
};

/* Over a sequence, whose rules say is_buffered. Adds to traits. */
int buffer_open(struct buffer *buffer, struct sequence *sequence, uint64_t capacity,
                uint64_t initial, struct plan_traits *traits);
void buffer_begin(struct buffer *buffer, const struct sequence *sequence, uint64_t epoch);

/* input(context) returns the next input record; called sequence->draws times an epoch. */
int buffer_next(struct buffer *buffer, uint64_t (*input)(void *context), void *context,
                struct plan_op *ops, uint32_t max);

#endif
