/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include "base/vector.h"

#include <math.h>

VECTOR_CLONES
void kernel_sgd(size_t count, double rate, double momentum, double decay, double scale,
                const real *gradient, real *weight, real *momenta)
{
    const real r = (real)rate, m = (real)momentum, d = (real)decay, s = (real)scale;

    for (size_t i = 0; i < count; i++) {
        momenta[i] = m * momenta[i] + s * gradient[i] + d * weight[i];
        weight[i] -= r * momenta[i];
    }
}

/* Several sums, since one addition waits for another. */
VECTOR_CLONES
double kernel_squares(size_t count, const real *values)
{
    enum { SUMS = 16 };
    double sums[SUMS] = {0}, squares = 0;
    size_t i = 0;

    for (; i + SUMS <= count; i += SUMS)
        for (size_t j = 0; j < SUMS; j++)
            sums[j] += (double)values[i + j] * values[i + j];
    for (; i < count; i++)
        squares += (double)values[i] * values[i];
    for (size_t j = 0; j < SUMS; j++)
        squares += sums[j];
    return squares;
}

void kernel_lars(size_t count, double rate, double rate_before, double momentum, double decay,
                 double eta, double scale, const real *gradient, real *weight, real *momenta)
{
    const double weights = sqrt(kernel_squares(count, weight));
    const double gradients = scale * sqrt(kernel_squares(count, gradient));
    const bool adapts = eta > 0 && weights > 0 && gradients > 0;
    const double local = adapts ? eta * weights / (gradients + decay * weights) : 1;
    const real m = (real)(rate_before > 0 ? momentum * rate / rate_before : momentum);
    const real r = (real)(rate * local), d = (real)decay, s = (real)scale;

    for (size_t i = 0; i < count; i++) {
        momenta[i] = m * momenta[i] + r * (s * gradient[i] + d * weight[i]);
        weight[i] -= momenta[i];
    }
}
