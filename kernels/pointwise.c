/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include "base/random.h"
#include "base/vector.h"

#include <assert.h>
#include <string.h>

void kernel_normalise(uint32_t images, size_t plane, const uint8_t *rows, const float mean[3],
                      const float deviation[3], real *output)
{
    for (uint32_t n = 0; n < images; n++, rows += 3 * plane)
        for (int c = 0; c < 3; c++, output += plane)
            for (size_t i = 0; i < plane; i++)
                output[i] = ((real)rows[3 * i + (size_t)c] - mean[c]) / deviation[c];
}

void kernel_relu(size_t count, const real *input, real *output)
{
    for (size_t i = 0; i < count; i++)
        output[i] = input[i] < 0 ? 0 : input[i];
}

void kernel_relu_backward(size_t count, const real *output, const real *d_output, real *d_input)
{
    for (size_t i = 0; i < count; i++)
        d_input[i] += output[i] <= 0 ? 0 : d_output[i];
}

void kernel_add(size_t count, const real *a, const real *b, real *sum)
{
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

void kernel_accumulate(size_t count, const real *term, real *sum)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += term[i];
}

void kernel_concat(uint32_t images, size_t part, size_t offset, size_t whole, const real *input,
                   real *output)
{
    for (uint32_t n = 0; n < images; n++)
        memcpy(output + n * whole + offset, input + n * part, part * sizeof *input);
}

void kernel_concat_backward(uint32_t images, size_t part, size_t offset, size_t whole,
                            const real *d_output, real *d_input)
{
    for (uint32_t n = 0; n < images; n++)
        kernel_accumulate(part, d_output + n * whole + offset, d_input + n * part);
}

uint64_t kernel_dropout_key(uint64_t seed, uint64_t step, uint32_t node)
{
    return random_hash(seed, step, node);
}

/* The finaliser of MurmurHash3 on an index and both halves of the key: multiplications of 32 bits,
 * since those of 64 bound a GPU by arithmetic. */
static uint32_t dropout_bits(uint64_t key, uint32_t index)
{
    uint32_t bits = (index * 0x9e3779b1u + (uint32_t)key) ^ (uint32_t)(key >> 32);

    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return bits ^ bits >> 16;
}

bool kernel_dropout_keeps(uint64_t key, uint64_t index, double rate)
{
    return dropout_bits(key, (uint32_t)index) >= kernel_dropout_least(rate);
}

void kernel_dropout(size_t count, uint64_t key, double rate, const real *input, real *output)
{
    const real scale = (real)(1 / (1 - rate));
    const uint32_t least = kernel_dropout_least(rate);

    assert(rate >= 0 && rate < 1);
    for (size_t i = 0; i < count; i++)
        output[i] = dropout_bits(key, (uint32_t)i) >= least ? input[i] * scale : 0;
}

void kernel_dropout_backward(size_t count, uint64_t key, double rate, const real *d_output,
                             real *d_input)
{
    const real scale = (real)(1 / (1 - rate));
    const uint32_t least = kernel_dropout_least(rate);

    for (size_t i = 0; i < count; i++)
        d_input[i] += dropout_bits(key, (uint32_t)i) >= least ? d_output[i] * scale : 0;
}
