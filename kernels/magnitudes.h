/* SPDX-License-Identifier: Apache-2.0
 * magnitudes: a histogram of the magnitudes of a tensor's values over many batches. Pure. */
#ifndef IOBENCH_KERNELS_MAGNITUDES_H
#define IOBENCH_KERNELS_MAGNITUDES_H

#include <stdint.h>

enum { MAGNITUDES_BINS = 2048 };

/* When a value exceeds the range, the range doubles and pairs of bins are merged; so at least half
 * of the bins are in use. Zeroed: no values yet. */
struct magnitudes {
    double range;   /* end of the last bin; 0: only zeros so far */
    double largest; /* infinite: a value was not finite, and the rest is meaningless */
    uint64_t zeros;
    uint64_t counts[MAGNITUDES_BINS];
};

void magnitudes_observe(struct magnitudes *magnitudes, uint64_t count, const float *values);

#endif
