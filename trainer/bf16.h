/* SPDX-License-Identifier: Apache-2.0
 * BF16: the upper half of a single-precision number. */
#ifndef IOBENCH_TRAINER_BF16_H
#define IOBENCH_TRAINER_BF16_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float bf16_to_float(uint16_t value)
{
    const uint32_t bits = (uint32_t)value << 16;
    float number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

/* To the nearest, ties to even; a NaN stays one. */
static inline uint16_t bf16_of_float(float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    const bool is_nan = (bits & INT32_MAX) > 0x7f800000;
    return (uint16_t)((is_nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
