/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/synthesis_pixels.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/vector.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 64 }; /* values past the end of a row that vector code and upsampling may access */

static int32_t between(struct random *random, int32_t low, int32_t high)
{
    return low + (int32_t)random_below(random, (uint64_t)(high - low) + 1);
}

int pixels_open(struct synthesis_pixels *pixels, uint32_t width_max, uint32_t height_max)
{
    const size_t row = width_max + 2 * MARGIN;

    *pixels = (struct synthesis_pixels){0};
    for (uint32_t i = 1; i < PIXELS_OCTAVES; i++) {
        size_t stride = (width_max >> i) + 3 + MARGIN, height = (height_max >> i) + 3;
        pixels->octaves[i].values = memory_array(stride * height, sizeof(int16_t));
        if (!pixels->octaves[i].values)
            return -ENOMEM;
    }
    pixels->rows = memory_array(row, 4 * sizeof(int16_t));
    pixels->gain = memory_array(row, 3);
    pixels->luma[0] = memory_array(row, PIXELS_STRIP * 3 / 2);
    if (!pixels->rows || !pixels->gain || !pixels->luma[0])
        return -ENOMEM;
    pixels->light = pixels->rows;
    pixels->light_before = pixels->light + row;
    pixels->noise = pixels->light + 2 * row;
    pixels->blend = pixels->light + 3 * row;
    pixels->bytes = pixels->gain + row;
    for (size_t i = 0; i < PIXELS_STRIP; i++)
        pixels->luma[i] = pixels->luma[0] + i * row;
    for (size_t i = 0; i < PIXELS_STRIP / 2; i++) {
        pixels->cb[i] = pixels->luma[0] + PIXELS_STRIP * row + i * (row / 2);
        pixels->cr[i] = pixels->cb[i] + PIXELS_STRIP / 2 * (row / 2);
    }
    return 0;
}

void pixels_close(struct synthesis_pixels *pixels)
{
    for (int i = 1; i < PIXELS_OCTAVES; i++)
        free(pixels->octaves[i].values);
    free(pixels->rows);
    free(pixels->gain);
    free(pixels->luma[0]);
}

/* ---- texture ---- */

/* Products of two uniform numbers: many small values and a few large ones, like the wavelet
 * coefficients of photographs. */
VECTOR_CLONES
static void add_noise(int16_t *restrict row, const uint8_t *restrict bytes, size_t count,
                      int32_t gain)
{
    for (size_t i = 0; i < count; i++) {
        int16_t product = (int16_t)((int16_t)(bytes[i] - 128) * (int16_t)(bytes[i + count] - 128));
        row[i] = (int16_t)(row[i] + ((int16_t)(product >> 8) * (int16_t)gain >> 6));
    }
}

/* Upsample one row by two: first between two coarse rows, then between adjacent values. */
VECTOR_CLONES
static void refine(int16_t *restrict row, int16_t *restrict blend, const int16_t *restrict near,
                   const int16_t *restrict far, size_t count)
{
    const size_t half = (count + 1) / 2;

    for (size_t i = 0; i <= half; i++)
        blend[i] = (int16_t)((3 * near[i] + far[i] + 2) >> 2);
    for (size_t i = 0; i < half; i++) {
        row[2 * i] = (int16_t)((3 * blend[i] + blend[i + 1] + 2) >> 2);
        row[2 * i + 1] = (int16_t)((blend[i] + 3 * blend[i + 1] + 2) >> 2);
    }
}

static void texture_row(struct synthesis_pixels *pixels, int octave, int16_t *row, uint32_t y,
                        uint32_t count, int32_t gain)
{
    if (octave + 1 < PIXELS_OCTAVES) {
        const struct pixels_octave *coarse = &pixels->octaves[octave + 1];
        const int16_t *upper = coarse->values + (size_t)(y / 2) * coarse->stride;
        const int16_t *lower = upper + coarse->stride;
        refine(row, pixels->blend, y % 2 ? lower : upper, y % 2 ? upper : lower, count);
    } else {
        memset(row, 0, count * sizeof *row);
    }
    uint8_t *bytes = pixels->bytes;
    for (size_t i = 0; i < (2 * (size_t)count); i += 8) {
        uint64_t value = random_next(&pixels->random);
        bytes_put_le32(bytes + i, (uint32_t)value);
        bytes_put_le32(bytes + i + 4, (uint32_t)(value >> 32));
    }
    add_noise(row, pixels->bytes, count, gain);
}

/* ---- leaves ---- */

/* Draw a radius r with density r^-3, which makes the picture look alike at every scale. */
static int32_t leaf_radius(struct random *random, int32_t low, int32_t high)
{
    /* Inverse of the distribution: low / sqrt(1 - u (1 - (low / high)^2)), in integers. */
    int64_t u = (int64_t)random_below(random, 65536);
    int64_t ratio = (int64_t)low * low * 65536 / ((int64_t)high * high);
    int64_t rest = 65536 - u * (65536 - ratio) / 65536;

    return (int32_t)((double)low * 256 / floor(sqrt((double)rest)));
}

/* Sixteen directions as vectors of 256 units, and twelve hues 32 units from grey. */
static const int16_t cosine16[16] = {256,  237,  181,  98,  0, -98, -181, -237,
                                     -256, -237, -181, -98, 0, 98,  181,  237};
static const int8_t hue_cb[12] = {32, 28, 16, 0, -16, -28, -32, -28, -16, 0, 16, 28};
static const int8_t hue_cr[12] = {0, 16, 28, 32, 28, 16, 0, -16, -28, -32, -28, -16};

static struct pixels_leaf make_leaf(struct random *random, int32_t width, int32_t height)
{
    const int32_t side = width < height ? width : height;
    const int32_t low = side / 48 + 1, high = side / 3 + low + 1;
    struct pixels_leaf leaf = {
        .x = between(random, 0, width),
        .y = between(random, 0, height),
        .half_width = leaf_radius(random, low, high),
        .half_height = leaf_radius(random, low, high),
        .shear = between(random, -200, 200),
        .light = between(random, 24, 232),
        .slope_x = between(random, -60, 60),
        .slope_y = between(random, -60, 60),
        .box = random_below(random, 4) == 0,
        .cb = (uint8_t)between(random, 106, 150),
        .cr = (uint8_t)between(random, 106, 150),
    };
    /* A third of the leaves are smooth, the others have texture of all strengths. */
    int32_t strength = between(random, 0, 255);
    leaf.gain = (uint8_t)(strength < 80 ? strength / 8 : 10 + strength * strength / 512);
    return leaf;
}

/* Encode the class: hue of the ground, direction and width of the waves on four large leaves. */
static void show_class(struct synthesis_pixels *pixels, uint32_t class)
{
    const uint32_t hue = class % 12, direction = class / 12 % 8, width = class / 96 % 3;
    const uint32_t hue_of_leaf = (hue + 4 + class / 288 % 4 * 2) % 12;
    const int32_t frequency = 16 << width; /* 65536 / (16 * 256): sixteen pixels or fewer */
    struct random *random = &pixels->random;
    struct pixels_leaf *leaf = pixels->leaves;

    leaf->cb = (uint8_t)(128 + hue_cb[hue]);
    leaf->cr = (uint8_t)(128 + hue_cr[hue]);
    for (int i = 0; i < 4; i++) {
        leaf = &pixels->leaves[PIXELS_LEAVES / 2 + i * 4];
        leaf->half_width = between(random, (int32_t)pixels->width / 8, (int32_t)pixels->width / 4);
        leaf->half_height =
            between(random, (int32_t)pixels->height / 8, (int32_t)pixels->height / 4);
        leaf->wave_x = frequency * cosine16[direction] / 2;
        leaf->wave_y = frequency * cosine16[(direction + 12) % 16] / 2;
        leaf->wave_height = between(random, 16, 40);
        leaf->cb = (uint8_t)(128 + hue_cb[hue_of_leaf]);
        leaf->cr = (uint8_t)(128 + hue_cr[hue_of_leaf]);
    }
}

static void make_leaves(struct synthesis_pixels *pixels, int32_t detail)
{
    const int32_t width = (int32_t)pixels->width, height = (int32_t)pixels->height;

    for (int i = 0; i < PIXELS_LEAVES; i++) {
        struct pixels_leaf *leaf = &pixels->leaves[i];
        *leaf = make_leaf(&pixels->random, width, height);
        int32_t gain = leaf->gain * detail / 64;
        leaf->gain = (uint8_t)(gain > 255 ? 255 : gain);
    }
    /* The first leaf is the ground: it covers everything. */
    pixels->leaves[0].half_width = pixels->leaves[0].half_height = 4 * (width + height);
    pixels->leaves[0].box = 1;
    pixels->leaves[0].shear = 0;
}

void pixels_start(struct synthesis_pixels *pixels, uint64_t seed, uint32_t class, uint32_t width,
                  uint32_t height, int32_t detail)
{
    pixels->random = random_start(seed);
    pixels->width = width;
    pixels->height = height;
    pixels->fine_gain = 48;
    make_leaves(pixels, detail);
    show_class(pixels, class);
    for (int i = PIXELS_OCTAVES - 1; i > 0; i--) {
        struct pixels_octave *octave = &pixels->octaves[i];
        /* Three more, so that the next finer octave finds adjacent values at the far edges. */
        octave->width = (pixels->width >> i) + 3;
        octave->height = (pixels->height >> i) + 3;
        octave->stride = octave->width + MARGIN;
        for (uint32_t y = 0; y < octave->height; y++)
            texture_row(pixels, i, octave->values + (size_t)y * octave->stride, y, octave->width,
                        64);
    }
    memset(pixels->light_before, 0, width * sizeof(int16_t));
}

/* Find the part of row y that a leaf covers; false if it covers none. */
static inline int leaf_span(const struct pixels_leaf *leaf, int32_t y, int32_t width, int32_t *from,
                            int32_t *to)
{
    const int32_t dy = y - leaf->y, high = leaf->half_height;

    if (dy > high || dy < -high)
        return 0;
    int32_t half = leaf->half_width, centre = leaf->x + leaf->shear * dy / 256;
    if (!leaf->box)
        half = (int32_t)((int64_t)half * (int32_t)sqrt((double)(high * high - dy * dy)) / high);
    *from = centre - half < 0 ? 0 : centre - half;
    *to = centre + half > width ? width : centre + half;
    return *from < *to;
}

VECTOR_CLONES
static void paint(int16_t *restrict row, int32_t count, int32_t light, int32_t slope, int32_t phase,
                  int32_t wave, int32_t height)
{
    for (int32_t i = 0; i < count; i++) {
        /* A triangle wave of the low 16 bits of the phase, -128..127. */
        int32_t part = (phase + i * wave) & 0xffff;
        int32_t turn = part < 0x8000 ? part : 0xffff - part;
        row[i] = (int16_t)((light + i * slope + ((turn >> 7) - 128) * height) >> 8);
    }
}

static void paint_row(struct synthesis_pixels *pixels, int32_t y)
{
    int32_t from, to;

    for (int i = 0; i < PIXELS_LEAVES; i++) {
        const struct pixels_leaf *leaf = &pixels->leaves[i];
        if (!leaf_span(leaf, y, (int32_t)pixels->width, &from, &to))
            continue;
        int32_t light = leaf->light * 256;
        light += (from - leaf->x) * leaf->slope_x + (y - leaf->y) * leaf->slope_y;
        paint(pixels->light + from, to - from, light, leaf->slope_x,
              from * leaf->wave_x + y * leaf->wave_y, leaf->wave_x, leaf->wave_height);
        memset(pixels->gain + from, leaf->gain, (size_t)(to - from));
    }
}

static inline int16_t clamp(int16_t value)
{
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

/* Simulate the lens: average the light with the values to the right and above, so edges are no
 * sharper than a camera's. */
VECTOR_CLONES
static void expose(uint8_t *restrict luma, const int16_t *restrict light,
                   const int16_t *restrict above, const int16_t *restrict noise,
                   const uint8_t *restrict gain, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int16_t soft = (int16_t)((light[i] + light[i + 1] + above[i] + above[i + 1] + 2) >> 2);
        /* noise * gain / 64, as the high half of a product of 16-bit numbers. */
        int16_t grain = (int16_t)((int16_t)(noise[i] * 16) * (int16_t)(gain[i] * 64) >> 16);
        luma[i] = (uint8_t)clamp((int16_t)(soft + grain));
    }
}

static void colour_row(struct synthesis_pixels *pixels, uint32_t row, int32_t y)
{
    uint8_t *cb = pixels->cb[row], *cr = pixels->cr[row];
    const int32_t width = (int32_t)pixels->width / 2;
    int32_t from, to;

    for (int i = 0; i < PIXELS_LEAVES; i++) {
        const struct pixels_leaf *leaf = &pixels->leaves[i];
        if (!leaf_span(leaf, y, 2 * width, &from, &to))
            continue;
        memset(cb + from / 2, leaf->cb, (size_t)((to + 1) / 2 - from / 2));
        memset(cr + from / 2, leaf->cr, (size_t)((to + 1) / 2 - from / 2));
    }
}

/* Texture also tints: one row of the half-size octave is added to Cb, the next is subtracted from
 * Cr. */
VECTOR_CLONES
static void tint(uint8_t *restrict cb, uint8_t *restrict cr, const int16_t *restrict noise,
                 const int16_t *restrict other, size_t count, int32_t gain)
{
    for (size_t i = 0; i < count; i++) {
        cb[i] = (uint8_t)clamp((int16_t)(cb[i] + ((int16_t)(noise[i] * (int16_t)gain) >> 9)));
        cr[i] = (uint8_t)clamp((int16_t)(cr[i] - ((int16_t)(other[i] * (int16_t)gain) >> 9)));
    }
}

void pixels_strip(struct synthesis_pixels *pixels, uint32_t top)
{
    const struct pixels_octave *half = &pixels->octaves[1];
    const uint32_t width = pixels->width;

    for (uint32_t i = 0; i < PIXELS_STRIP; i++) {
        texture_row(pixels, 0, pixels->noise, top + i, width, pixels->fine_gain);
        paint_row(pixels, (int32_t)(top + i));
        pixels->light[width] = pixels->light[width - 1];
        if (top + i == 0)
            memcpy(pixels->light_before, pixels->light, (width + 1) * sizeof(int16_t));
        expose(pixels->luma[i], pixels->light, pixels->light_before, pixels->noise, pixels->gain,
               width);
        int16_t *light = pixels->light;
        pixels->light = pixels->light_before;
        pixels->light_before = light;
    }
    for (uint32_t i = 0; i < PIXELS_STRIP / 2; i++) {
        uint32_t y = top / 2 + i;
        const int16_t *noise = half->values + (size_t)y * half->stride;
        colour_row(pixels, i, (int32_t)(2 * y));
        tint(pixels->cb[i], pixels->cr[i], noise, noise + half->stride, width / 2, 48);
    }
}
