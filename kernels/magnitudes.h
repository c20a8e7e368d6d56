/* SPDX-License-Identifier: Apache-2.0
 *
 * magnitudes: a histogram of how large the values of a tensor are, over many batches. Pure.
 */
#ifndef IOBENCH_KERNELS_MAGNITUDES_H
#define IOBENCH_KERNELS_MAGNITUDES_H

#include <stdint.h>

enum { MAGNITUDES_BINS = 2048 };

/* The range doubles when a value lies beyond, and pairs of bins become one; so at least half of the
 * bins are in use. Zeroed: no values yet. */
struct magnitudes {
    double range;   /* end of the last bin; 0: only zeros so far */
    double largest; /* infinite: a value was not finite, and the rest says nothing */
    uint64_t zeros;
    uint64_t counts[MAGNITUDES_BINS];
};

void magnitudes_observe(struct magnitudes *magnitudes, uint64_t count, const float *values);

#endif
