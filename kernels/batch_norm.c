/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include "base/vector.h"

#include <math.h>

/* Sums over one channel of all images, image by image. */
static double channel_sum(uint32_t images, size_t step, size_t plane, const real *values)
{
    double sum = 0;

    for (uint32_t n = 0; n < images; n++, values += step)
        for (size_t i = 0; i < plane; i++)
            sum += values[i];
    return sum;
}

void kernel_batch_norm(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                       const real *input, const real *gamma, const real *beta, real *output,
                       real *mean, real *variance)
{
    const double count = (double)images * (double)plane;

    for (uint32_t c = 0; c < channels; c++) {
        const real *values = input + c * plane;
        const double average = channel_sum(images, channels * plane, plane, values) / count;
        double squares = 0; /* around the mean, so that a large mean costs no precision */
        for (uint32_t n = 0; n < images; n++, values += channels * plane)
            for (size_t i = 0; i < plane; i++)
                squares += (values[i] - average) * (values[i] - average);
        mean[c] = (real)average;
        variance[c] = (real)(squares / count);
    }
    kernel_batch_norm_infer(images, channels, plane, epsilon, input, gamma, beta, mean, variance,
                            output);
}

void kernel_batch_norm_infer(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                             const real *input, const real *gamma, const real *beta,
                             const real *mean, const real *variance, real *output)
{
    for (uint32_t n = 0; n < images; n++)
        for (uint32_t c = 0; c < channels; c++, input += plane, output += plane) {
            const real scale = (real)(gamma[c] / sqrt(variance[c] + epsilon));
            for (size_t i = 0; i < plane; i++)
                output[i] = (input[i] - mean[c]) * scale + beta[c];
        }
}

/* With x' the normalised input and count values per channel (Ioffe and Szegedy, section 3,
 * combined): d_input = gamma / deviation * (d - sum(d) / count - x' * sum(d * x') / count). */
void kernel_batch_norm_backward(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                                const real *input, const real *gamma, const real *mean,
                                const real *variance, const real *d_output, real *d_input,
                                real *d_gamma, real *d_beta)
{
    const double count = (double)images * (double)plane;
    const size_t step = channels * plane;

    for (uint32_t c = 0; c < channels; c++) {
        const double inverse = 1 / sqrt(variance[c] + epsilon), center = mean[c];
        const real *x = input + c * plane, *d = d_output + c * plane;
        double sum = channel_sum(images, step, plane, d), dot = 0;
        for (uint32_t n = 0; n < images; n++)
            for (size_t i = 0; i < plane; i++)
                dot += d[n * step + i] * (x[n * step + i] - center) * inverse;
        d_gamma[c] += (real)dot;
        d_beta[c] += (real)sum;
        const real scale = (real)(gamma[c] * inverse), shift = (real)(sum / count);
        const real slope = (real)(dot / count * inverse);
        for (uint32_t n = 0; n < images; n++)
            for (size_t i = 0; i < plane; i++) {
                size_t at = n * step + i;
                d_input[c * plane + at] += scale * (d[at] - shift - (x[at] - mean[c]) * slope);
            }
    }
}

void kernel_batch_norm_statistics(uint32_t channels, size_t count, double momentum,
                                  const real *mean, const real *variance, real *running_mean,
                                  real *running_variance)
{
    const double unbiased = count > 1 ? (double)count / (double)(count - 1) : 1;

    for (uint32_t c = 0; c < channels; c++) {
        running_mean[c] = (real)((1 - momentum) * running_mean[c] + momentum * mean[c]);
        running_variance[c] =
            (real)((1 - momentum) * running_variance[c] + momentum * unbiased * variance[c]);
    }
}
