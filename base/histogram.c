/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <assert.h>
#include <math.h>

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram_add_many(histogram, value, 1);
}

void histogram_add_many(struct histogram *histogram, uint64_t value, uint64_t count)
{
    if (count == 0)
        return;
    if (histogram->count == 0 || value < histogram->minimum)
        histogram->minimum = value;
    if (value > histogram->maximum)
        histogram->maximum = value;
    histogram->count += count;
    histogram->sum += value * count;
    /* Values below 2^SUB_BITS have a bucket each; above, each octave has 2^SUB_BITS buckets. */
    uint32_t bucket = (uint32_t)value;
    if (value >= 1u << HISTOGRAM_SUB_BITS) {
        const uint32_t octave = 63u - (uint32_t)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
        bucket = octave >= HISTOGRAM_OCTAVES
                     ? HISTOGRAM_BUCKETS - 1
                     : ((octave + 1) << HISTOGRAM_SUB_BITS) +
                           (uint32_t)(value >> octave & ((1u << HISTOGRAM_SUB_BITS) - 1));
    }
    assert(bucket < HISTOGRAM_BUCKETS);
    histogram->buckets[bucket] += count;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    if (from->count == 0)
        return;
    if (into->count == 0 || from->minimum < into->minimum)
        into->minimum = from->minimum;
    if (from->maximum > into->maximum)
        into->maximum = from->maximum;
    into->count += from->count;
    into->sum += from->sum;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t histogram_quantile(const struct histogram *histogram, double fraction)
{
    assert(fraction >= 0);
    if (histogram->count == 0)
        return 0;
    if (fraction >= 1)
        return histogram->maximum;
    /* Nearest rank, from 1; less the amount by which 0.999 x 1000 exceeds 999. */
    uint64_t rank = (uint64_t)ceil(fraction * (double)histogram->count * (1 - 1e-12)), seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= rank && seen > 0) {
            const uint32_t octave = i >> HISTOGRAM_SUB_BITS, sub = 1u << HISTOGRAM_SUB_BITS;
            uint64_t value = i; /* the middle of the bucket */
            if (octave > 0)
                value = ((uint64_t)(sub | (i & (sub - 1))) << (octave - 1)) +
                        ((UINT64_C(1) << (octave - 1)) >> 1);
            if (value < histogram->minimum)
                return histogram->minimum;
            return value > histogram->maximum ? histogram->maximum : value;
        }
    }
    return histogram->maximum;
}
