/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

/* Number of classes ranked before the label when sorted by logit. */
static uint32_t rank_of(uint32_t classes, const real *logits, uint32_t label)
{
    uint32_t rank = 0;

    for (uint32_t k = 0; k < classes; k++)
        rank += !(logits[k] < logits[label] || (logits[k] == logits[label] && k >= label));
    return rank;
}

/* ln(sum of e^logit), shifted by the maximum to avoid overflow. */
static double log_sum(uint32_t classes, const real *logits)
{
    double largest = logits[0], sum = 0;

    for (uint32_t k = 1; k < classes; k++)
        largest = logits[k] > largest ? logits[k] : largest;
    for (uint32_t k = 0; k < classes; k++)
        sum += exp(logits[k] - largest);
    return largest + log(sum);
}

static double one_image(uint32_t classes, const real *logits, uint32_t label, double smoothing,
                        double weight, real *d_logits)
{
    const double total = log_sum(classes, logits), even = smoothing / classes;
    double loss = 0;

    for (uint32_t k = 0; k < classes; k++) {
        double target = even + (k == label ? 1 - smoothing : 0);
        /* An infinite logit with weight 0 must not make 0 * infinity. */
        if (target > 0)
            loss += target * (total - logits[k]);
        if (d_logits)
            d_logits[k] = (real)((exp(logits[k] - total) - target) * weight);
    }
    return loss;
}

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
        uint32_t label = (uint32_t)labels[n], rank = rank_of(classes, logits, label);
        result.loss += weight * one_image(classes, logits, label, smoothing, weight, d_row);
        result.correct += rank < 1;
        result.correct_top5 += rank < 5;
    }
    return result;
}
