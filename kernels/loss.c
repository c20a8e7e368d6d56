/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

struct kernel_loss kernel_cross_entropy(uint32_t images, uint32_t classes, const real *logits,
                                        const int32_t *labels, double smoothing, real *d_logits)
{
    struct kernel_loss result = {0};

    for (uint32_t n = 0; n < images; n++)
        result.counted += labels[n] >= 0;
    const double weight = result.counted ? 1.0 / result.counted : 0;
    for (uint32_t n = 0; n < images; n++, logits += classes) {
        real *d_row = d_logits ? d_logits + (size_t)n * classes : NULL;
        if (labels[n] < 0) {
            for (uint32_t k = 0; d_row && k < classes; k++)
                d_row[k] = 0;
            continue;
        }
        const uint32_t label = (uint32_t)labels[n];
        double largest = logits[0], sum = 0, loss = 0;
        uint32_t rank = 0; /* classes before the label when sorted by logit */
        for (uint32_t k = 0; k < classes; k++) {
            rank += !(logits[k] < logits[label] || (logits[k] == logits[label] && k >= label));
            largest = logits[k] > largest ? logits[k] : largest;
        }
        for (uint32_t k = 0; k < classes; k++) /* shifted by the maximum to avoid overflow */
            sum += exp(logits[k] - largest);
        const double total = largest + log(sum), even = smoothing / classes;
        for (uint32_t k = 0; k < classes; k++) {
            const double target = even + (k == label ? 1 - smoothing : 0);
            /* An infinite logit with weight 0 must not make 0 * infinity. */
            if (target > 0)
                loss += target * (total - logits[k]);
            if (d_row)
                d_row[k] = (real)((exp(logits[k] - total) - target) * weight);
        }
        result.loss += weight * loss;
        result.correct += rank < 1;
        result.correct_top5 += rank < 5;
    }
    return result;
}
