/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

/* The base raised to -beta, for one channel of one pixel; input points at channel 0. */
static double base_of(const struct kernel_lrn *lrn, const real *input, uint32_t channel)
{
    const uint32_t half = lrn->size / 2;
    const uint32_t low = channel > half ? channel - half : 0;
    const uint32_t last = channel + half < lrn->channels ? channel + half : lrn->channels - 1;
    double squares = 0;

    for (uint32_t c = low; c <= last; c++) {
        double value = input[c * lrn->plane];
        squares += value * value;
    }
    return lrn->k + lrn->alpha / lrn->size * squares;
}

void kernel_lrn(const struct kernel_lrn *lrn, const real *input, real *output)
{
    const size_t image = lrn->channels * lrn->plane;

    for (size_t n = 0; n < lrn->images * image; n += image)
        for (uint32_t c = 0; c < lrn->channels; c++)
            for (size_t i = 0; i < lrn->plane; i++) {
                size_t at = n + c * lrn->plane + i;
                output[at] = (real)(input[at] * pow(base_of(lrn, input + n + i, c), -lrn->beta));
            }
}

/* Output c depends on every input within half a window: with s the base, and x and d the input and
 * gradient of channel c, it adds d * s^-beta to its own input and -2 * alpha / size * beta * d * x
 * * s^(-beta - 1) * x' to each input x' in its window. */
void kernel_lrn_backward(const struct kernel_lrn *lrn, const real *input, const real *d_output,
                         real *d_input)
{
    const size_t image = lrn->channels * lrn->plane;
    const uint32_t half = lrn->size / 2;
    const double factor = -2 * lrn->alpha / lrn->size * lrn->beta;

    for (size_t n = 0; n < lrn->images * image; n += image)
        for (uint32_t c = 0; c < lrn->channels; c++)
            for (size_t i = 0; i < lrn->plane; i++) {
                const size_t pixel = n + i, at = pixel + c * lrn->plane;
                const double base = base_of(lrn, input + pixel, c);
                const double own = d_output[at] * pow(base, -lrn->beta);
                const double shared = factor * own * input[at] / base;
                d_input[at] += (real)own;
                for (uint32_t j = c > half ? c - half : 0; j <= c + half && j < lrn->channels; j++)
                    d_input[pixel + j * lrn->plane] +=
                        (real)(shared * input[pixel + j * lrn->plane]);
            }
}
