/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sample.h"

#include <math.h>

void sample_set_label(struct sample *sample, double label)
{
    const bool whole = isfinite(label) && label == rint(label) && label <= INT32_MAX;

    sample->label = whole && label >= 0 ? (int32_t)label : -1;
    sample->has_odd_label = !whole;
    sample->odd_label = label;
}

void sample_round_label(struct sample *sample)
{
    if (isfinite(sample->odd_label))
        sample_set_label(sample, round(sample->odd_label));
}
