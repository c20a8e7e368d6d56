/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/magnitudes.h"

#include <math.h>

void magnitudes_observe(struct magnitudes *magnitudes, uint64_t count, const float *values)
{
    double largest = 0;

    for (uint64_t i = 0; i < count; i++) {
        const double magnitude = isfinite(values[i]) ? fabs((double)values[i]) : INFINITY;
        largest = magnitude > largest ? magnitude : largest;
    }
    magnitudes->largest = largest > magnitudes->largest ? largest : magnitudes->largest;
    if (isinf(magnitudes->largest))
        return;
    if (magnitudes->range == 0)
        magnitudes->range = largest;
    for (; largest > magnitudes->range; magnitudes->range *= 2) {
        uint64_t *counts = magnitudes->counts;
        for (uint32_t i = 0; i < MAGNITUDES_BINS / 2; i++)
            counts[i] = counts[2 * i] + counts[2 * i + 1];
        for (uint32_t i = MAGNITUDES_BINS / 2; i < MAGNITUDES_BINS; i++)
            counts[i] = 0;
    }
    const double bins_a_unit = magnitudes->range > 0 ? MAGNITUDES_BINS / magnitudes->range : 0;
    for (uint64_t i = 0; i < count; i++) {
        const double magnitude = fabs((double)values[i]);
        const uint32_t bin = (uint32_t)(magnitude * bins_a_unit);
        if (magnitude > 0)
            magnitudes->counts[bin < MAGNITUDES_BINS ? bin : MAGNITUDES_BINS - 1]++;
        else
            magnitudes->zeros++;
    }
}
