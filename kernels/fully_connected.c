/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void kernel_fully_connected(uint32_t images, size_t inputs, size_t outputs, const real *input,
                            const real *weight, const real *bias, real *output, real *workspace)
{
    enum { SIDE = 32 };

    for (uint32_t n = 0; n < images; n++)
        for (size_t j = 0; j < outputs; j++)
            output[n * outputs + j] = bias[j];
    /* Transpose the weights, in tiles that fit into cache. */
    for (size_t row = 0; row < outputs; row += SIDE)
        for (size_t column = 0; column < inputs; column += SIDE)
            for (size_t i = row; i < least(row + SIDE, outputs); i++)
                for (size_t j = column; j < least(column + SIDE, inputs); j++)
                    workspace[j * outputs + i] = weight[i * inputs + j];
    kernel_matrix_add(images, outputs, inputs, (struct kernel_matrix){input, inputs, 1}, workspace,
                      outputs, output, outputs);
}

void kernel_fully_connected_backward(uint32_t images, size_t inputs, size_t outputs,
                                     const real *input, const real *weight, const real *d_output,
                                     real *d_input, real *d_weight, real *d_bias)
{
    for (size_t j = 0; j < outputs; j++) {
        double sum = 0;
        for (uint32_t n = 0; n < images; n++)
            sum += d_output[n * outputs + j];
        d_bias[j] += (real)sum;
    }
    kernel_matrix_add(outputs, inputs, images, (struct kernel_matrix){d_output, 1, outputs}, input,
                      inputs, d_weight, inputs);
    if (d_input)
        kernel_matrix_add(images, inputs, outputs, (struct kernel_matrix){d_output, outputs, 1},
                          weight, inputs, d_input, inputs);
}
