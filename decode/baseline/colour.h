/* SPDX-License-Identifier: Apache-2.0
 *
 * colour: upsampling of rows of samples, and their conversion to RGBX. Plain C that compilers
 * vectorise, compiled once per CPU (colour_template.h); equal to libjpeg-turbo.
 */
#ifndef IOBENCH_DECODE_BASELINE_COLOUR_H
#define IOBENCH_DECODE_BASELINE_COLOUR_H

#include <stdint.h>

/* The next three go on to a multiple of COLOUR_STEP, so that no rest is left to scalar code: all
 * arrays have room for that, filled with anything. */
enum { COLOUR_STEP = 32 };

static inline uint32_t colour_steps(uint32_t count)
{
    return (count + COLOUR_STEP - 1) / COLOUR_STEP * COLOUR_STEP;
}

/* out[i] = 3 x near[i] + far[i] */
typedef void colour_blend(const uint8_t *near, const uint8_t *far, uint32_t count, uint16_t *out);

/* Two outputs per input, each interpolated: in[-1] and in[count] are read.
 * out[2i] = (3 in[i] + in[i - 1] + even) >> 4, out[2i + 1] = (3 in[i] + in[i + 1] + odd) >> 4 */
typedef void colour_double(const uint16_t *in, uint32_t count, uint32_t even, uint32_t odd,
                           uint8_t *out);

/* out[i] = (in[i] + bias) >> 2 */
typedef void colour_quarter(const uint16_t *in, uint32_t count, uint32_t bias, uint8_t *out);

typedef void colour_rgbx(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint32_t count,
                         uint8_t *rgbx);
/* Chroma for rgbx() of pixels [x, x + width), x being 0 or 1: interpolated as by colour_double,
 * from samples that are blended. */
struct colour_halves {
    const uint16_t *cb, *cr;
    uint32_t even, odd;
};

typedef void colour_rgbx_twice(const uint8_t *y, const struct colour_halves *halves, uint32_t x,
                               uint32_t width, uint8_t *rgbx);
typedef void colour_grey(const uint8_t *y, uint32_t count, uint8_t *rgbx);

#endif
