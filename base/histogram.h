/* SPDX-License-Identifier: Apache-2.0
 *
 * histogram: log-bucketed counts of durations or sizes, 64 buckets per octave below 2^40, so
 * percentiles are within 1.6%. One writer each; merge to combine threads.
 */
#ifndef IOBENCH_BASE_HISTOGRAM_H
#define IOBENCH_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_SUB_BITS = 6, HISTOGRAM_OCTAVES = 42 };
enum { HISTOGRAM_BUCKETS = (HISTOGRAM_OCTAVES + 1) << HISTOGRAM_SUB_BITS };

struct histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t minimum; /* meaningful when count > 0 */
    uint64_t maximum;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
void histogram_add_many(struct histogram *histogram, uint64_t value, uint64_t count);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* Return the nearest-rank percentile: the smallest entry that at least `fraction` (0 to 1) of all
 * entries do not exceed. 0 if empty; 1 gives the maximum. */
uint64_t histogram_quantile(const struct histogram *histogram, double fraction);

/* Equal values that follow each other, such as the latencies of reads that were issued and reaped
 * together: they are added in one step, when another value comes or at the end. */
struct histogram_run {
    struct histogram *to; /* NULL: none yet */
    uint64_t value, count;
};

static inline void histogram_run_end(struct histogram_run *run)
{
    if (run->to)
        histogram_add_many(run->to, run->value, run->count);
    run->to = NULL;
}

static inline void histogram_run_add(struct histogram_run *run, struct histogram *to,
                                     uint64_t value)
{
    if (run->to == to && run->value == value) {
        run->count++;
        return;
    }
    histogram_run_end(run);
    *run = (struct histogram_run){.to = to, .value = value, .count = 1};
}

#endif
