/* SPDX-License-Identifier: Apache-2.0
 * FP16 and BF16 by definition, independent of the compiler's and the kernels'. */
#ifndef IOBENCH_TESTS_CUDA_HALF_H
#define IOBENCH_TESTS_CUDA_HALF_H

#include "kernels/device.h"

#include <math.h>
#include <string.h>

/* Round to 11 (FP16) or 8 (BF16) binary digits; ties to even. */
static inline float place_round(enum device_type type, float value)
{
    const int digits = type == DEVICE_FP16 ? 11 : 8, least = type == DEVICE_FP16 ? -24 : -133;
    int exponent;

    if (type == DEVICE_FP32 || value == 0)
        return value;
    frexpf(value, &exponent);
    const int unit = exponent - digits > least ? exponent - digits : least;
    return ldexpf(nearbyintf(ldexpf(value, -unit)), unit);
}

static inline uint16_t place_bits(enum device_type type, float value)
{
    uint32_t bits;
    int exponent;

    if (type == DEVICE_BF16) {
        memcpy(&bits, &value, sizeof bits);
        return (uint16_t)(bits >> 16);
    }
    const uint32_t sign = signbit(value) ? 0x8000 : 0;
    const float size = fabsf(frexpf(value, &exponent));
    if (size == 0)
        return (uint16_t)sign;
    if (exponent > 16) /* 65536 and more */
        return (uint16_t)(sign | 0x7c00);
    if (exponent < -13) /* below the normal ones */
        return (uint16_t)(sign | (uint32_t)ldexpf(size, exponent + 24));
    return (uint16_t)(sign | (uint32_t)(exponent + 14) << 10 |
                      ((uint32_t)ldexpf(size, 11) & 0x3ff));
}

static inline float place_value(enum device_type type, uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16, fraction = bits & 0x3ff;
    const int exponent = bits >> 10 & 0x1f;
    float value;

    if (type == DEVICE_BF16) {
        memcpy(&value, &wide, sizeof value);
        return value;
    }
    if (exponent == 31)
        return fraction ? NAN : bits & 0x8000 ? -INFINITY : INFINITY;
    value =
        exponent ? ldexpf((float)(fraction | 0x400), exponent - 25) : ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -value : value;
}

#endif
