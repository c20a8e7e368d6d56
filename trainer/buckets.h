/* SPDX-License-Identifier: Apache-2.0
 *
 * buckets: a gradient arena split into parts, each sent once final: parts of about equal size, or
 * all but the last, which is small, as no backward pass is left to hide it. Parts begin at
 * multiples of 512 bytes, which suits devices and network adapters. Pure.
 */
#ifndef IOBENCH_TRAINER_BUCKETS_H
#define IOBENCH_TRAINER_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_ALIGNMENT_FLOATS = 128, BUCKET_LAST_SHARE = 16 };

struct buckets {
    uint64_t floats, last_floats; /* last_floats: 0 if all are equal */
    uint32_t count, started;      /* of this step */
};

static inline struct buckets buckets_of(uint64_t floats, uint32_t wanted)
{
    const uint64_t most = floats / BUCKET_ALIGNMENT_FLOATS;
    const uint32_t count = wanted < most ? wanted : (uint32_t)most;

    return (struct buckets){.floats = floats, .count = count > 0 ? count : 1};
}

/* The same, the last of several at most a sixteenth of all. */
static inline struct buckets buckets_of_backward(uint64_t floats, uint32_t wanted)
{
    struct buckets buckets = buckets_of(floats, wanted);

    if (buckets.count > 1 && buckets.count < BUCKET_LAST_SHARE)
        buckets.last_floats = floats / BUCKET_LAST_SHARE;
    return buckets;
}

/* Return the offset at which bucket i begins; i == count: the end. */
static inline uint64_t buckets_start(const struct buckets *buckets, uint32_t i)
{
    const uint32_t equal = buckets->last_floats ? buckets->count - 1 : buckets->count;
    const uint64_t start = (buckets->floats - buckets->last_floats) / equal * i;

    return i == buckets->count ? buckets->floats : start - start % BUCKET_ALIGNMENT_FLOATS;
}

/* Return the next bucket if it is within [0, done). */
static inline bool buckets_next(struct buckets *buckets, uint64_t done, uint64_t *start,
                                uint64_t *count)
{
    if (buckets->started == buckets->count || buckets_start(buckets, buckets->started + 1) > done)
        return false;
    *start = buckets_start(buckets, buckets->started);
    *count = buckets_start(buckets, ++buckets->started) - *start;
    return true;
}

#endif
