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

static double norm(size_t count, const real *values)
{
    double squares = 0;

    for (size_t i = 0; i < count; i++)
        squares += (double)values[i] * values[i];
    return sqrt(squares);
}

static void step(size_t count, double rate, double rate_before, double local, double momentum,
                 double decay, double scale, const real *gradient, real *weight, real *momenta)
{
    const real m = (real)(rate_before > 0 ? momentum * rate / rate_before : momentum);
    const real r = (real)(rate * local), d = (real)decay, s = (real)scale;

    for (size_t i = 0; i < count; i++) {
        momenta[i] = m * momenta[i] + r * (s * gradient[i] + d * weight[i]);
        weight[i] -= momenta[i];
    }
}

void kernel_lars(size_t count, double rate, double rate_before, double momentum, double decay,
                 double eta, double scale, const real *gradient, real *weight, real *momenta)
{
    const double weights = norm(count, weight), gradients = scale * norm(count, gradient);
    double local = 1;

    if (weights > 0 && gradients > 0)
        local = eta * weights / (gradients + decay * weights);
    step(count, rate, rate_before, local, momentum, decay, scale, gradient, weight, momenta);
}

void kernel_lars_plain(size_t count, double rate, double rate_before, double momentum, double decay,
                       double scale, const real *gradient, real *weight, real *momenta)
{
    step(count, rate, rate_before, 1, momentum, decay, scale, gradient, weight, momenta);
}
