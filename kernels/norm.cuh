/* SPDX-License-Identifier: Apache-2.0
 * norm: the backward pass of BN, for any source of its gradient. For device kernels only. */
#ifndef IOBENCH_KERNELS_NORM_CUH
#define IOBENCH_KERNELS_NORM_CUH

#include "kernels/columns.cuh"

/* From sum(dz) and sum(dz * (x - mean)): both parameters' gradients, and a, b, c of d_input = a *
 * dz + b * x + c (kernels/kernels.c, with the terms in x combined). */
struct norm_backward_finish {
    device_norm norm;
    double count;
    float *d_gamma, *d_beta, *abc;
    uint32_t channels;

    KERNEL_CODE void take(uint32_t c, double sum, double dot) const
    {
        const double inverse = norm.inverse[c];
        const double a = norm.gamma[c] * inverse;
        const double b = -a * inverse * inverse * dot / count;

        d_gamma[c] = (float)(dot * inverse);
        d_beta[c] = (float)sum;
        abc[c] = (float)a;
        abc[channels + c] = (float)b;
        abc[2 * channels + c] = (float)(-a * sum / count - b * norm.mean[c]);
    }
};

#endif
