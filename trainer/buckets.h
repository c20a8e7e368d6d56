/* SPDX-License-Identifier: Apache-2.0
 *
 * buckets: a gradient arena split into parts, each sent once final. Parts are about equal, or end
 * with layers: then one is sent as soon as the gradients of its last layer are there, and the last
 * one is small, as no backward pass is left to hide it. Parts begin at multiples of 512 bytes,
 * which suits devices and network adapters, so up to 127 floats of a layer travel with the next
 * one. Pure.
 */
#ifndef IOBENCH_TRAINER_BUCKETS_H
#define IOBENCH_TRAINER_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_ALIGNMENT_FLOATS = 128, BUCKET_LAST_SHARE = 16 };

struct graph;

struct buckets {
    uint64_t floats;
    uint64_t *ends;          /* of each bucket; NULL: all are equal */
    uint32_t count, started; /* of this step */
};

static inline struct buckets buckets_of(uint64_t floats, uint32_t wanted)
{
    const uint64_t most = floats / BUCKET_ALIGNMENT_FLOATS;
    const uint32_t count = wanted < most ? wanted : (uint32_t)most;

    return (struct buckets){.floats = floats, .count = count > 0 ? count : 1};
}

/* Cut the gradients of a sealed graph at layers: at most one bucket a layer, the last of several at
 * most a sixteenth of all, or one layer. Returns 0 or -ENOMEM; free it. */
int buckets_by_layer(struct buckets *buckets, const struct graph *graph, uint32_t wanted);
void buckets_free(struct buckets *buckets);

/* Return the offset at which bucket i begins; i == count: the end. */
static inline uint64_t buckets_start(const struct buckets *buckets, uint32_t i)
{
    if (i == buckets->count)
        return buckets->floats;
    if (buckets->ends)
        return i ? buckets->ends[i - 1] : 0;
    const uint64_t start = buckets->floats / buckets->count * i;
    return start - start % BUCKET_ALIGNMENT_FLOATS;
}

static inline uint64_t buckets_floats(const struct buckets *buckets, uint32_t i)
{
    return buckets_start(buckets, i + 1) - buckets_start(buckets, i);
}

/* Return the next bucket if it is within [0, done). */
static inline bool buckets_next(struct buckets *buckets, uint64_t done, uint64_t *start,
                                uint64_t *count)
{
    if (buckets->started == buckets->count || buckets_start(buckets, buckets->started + 1) > done)
        return false;
    *start = buckets_start(buckets, buckets->started);
    *count = buckets_floats(buckets, buckets->started++);
    return true;
}

#endif
