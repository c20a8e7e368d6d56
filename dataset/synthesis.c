/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/synthesis.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/heap.h"
#include "base/bytes.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/vector.h"

/* ---- pixels, strip by strip ---- */

enum {
    PIXELS_STRIP = 16, /* luma rows per step: one row of 4:2:0 blocks */
    PIXELS_LEAVES = 56,
    PIXELS_OCTAVES = 6,
};

/* One shape. Rows are spans: centre + shear * dy, half a width that depends on the kind. */
struct pixels_leaf {
    int32_t x, y, half_width, half_height, shear; /* shear in 1/256 pixel per row */
    int32_t light, slope_x, slope_y;              /* luma, and its slope in 1/256 per pixel */
    int32_t wave_x, wave_y, wave_height;          /* a pattern; phase in 1/65536 per pixel */
    uint8_t gain;                                 /* of the texture, 64 is 1 */
    uint8_t box;                                  /* straight sides; else an ellipse */
    uint8_t cb, cr;
};

struct pixels_octave {
    int16_t *values;
    uint32_t width, height, stride;
};

struct synthesis_pixels {
    struct random random;
    uint32_t width, height; /* multiples of PIXELS_STRIP */
    struct pixels_leaf leaves[PIXELS_LEAVES];
    struct pixels_octave octaves[PIXELS_OCTAVES]; /* 0, the finest, is never kept */
    int16_t *rows;                                /* holds the four below */
    int16_t *light, *light_before, *noise, *blend;
    uint8_t *gain, *bytes;
    uint8_t *luma[PIXELS_STRIP], *cb[PIXELS_STRIP / 2], *cr[PIXELS_STRIP / 2];
    int32_t fine_gain; /* of the finest octave, 64 is 1 */
};

enum { MARGIN = 64 }; /* values past the end of a row that vector code and upsampling may access */

static int32_t draw_between(struct random *random, int32_t low, int32_t high)
{
    return low + (int32_t)random_below(random, (uint64_t)(high - low) + 1);
}

/* Allocate memory for images up to this size. Returns 0, or -ENOMEM. */
static int pixels_open(struct synthesis_pixels *pixels, uint32_t width_max, uint32_t height_max)
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

/* detail: strength of texture, 64 is 1. */
static void pixels_start(struct synthesis_pixels *pixels, uint64_t seed, uint32_t class,
                         int32_t width, int32_t height, int32_t detail)
{
    pixels->random = random_start(seed);
    pixels->width = (uint32_t)width;
    pixels->height = (uint32_t)height;
    pixels->fine_gain = 48;
    for (int i = 0; i < PIXELS_LEAVES; i++) {
        struct pixels_leaf *leaf = &pixels->leaves[i];
        struct random *random = &pixels->random;
        const int32_t side = width < height ? width : height;
        const int32_t low = side / 48 + 1, high = side / 3 + low + 1;
        *leaf = (struct pixels_leaf){
            .x = draw_between(random, 0, width),
            .y = draw_between(random, 0, height),
            .half_width = leaf_radius(random, low, high),
            .half_height = leaf_radius(random, low, high),
            .shear = draw_between(random, -200, 200),
            .light = draw_between(random, 24, 232),
            .slope_x = draw_between(random, -60, 60),
            .slope_y = draw_between(random, -60, 60),
            .box = random_below(random, 4) == 0,
            .cb = (uint8_t)draw_between(random, 106, 150),
            .cr = (uint8_t)draw_between(random, 106, 150),
        };
        /* A third of the leaves are smooth, the others have texture of all strengths. */
        const int32_t strength = draw_between(random, 0, 255);
        const int32_t gain =
            (strength < 80 ? strength / 8 : 10 + strength * strength / 512) * detail / 64;
        leaf->gain = (uint8_t)(gain > 255 ? 255 : gain);
    }
    /* The first leaf is the ground: it covers everything. */
    pixels->leaves[0].half_width = pixels->leaves[0].half_height = 4 * (width + height);
    pixels->leaves[0].box = 1;
    pixels->leaves[0].shear = 0;
    /* Encode the class: hue of the ground, direction and width of the waves on four large leaves.
     */
    const uint32_t hue = class % 12, direction = class / 12 % 8, wave = class / 96 % 3;
    const uint32_t hue_of_leaf = (hue + 4 + class / 288 % 4 * 2) % 12;
    const int32_t frequency = 16 << wave; /* 65536 / (16 * 256): sixteen pixels or fewer */
    pixels->leaves[0].cb = (uint8_t)(128 + hue_cb[hue]);
    pixels->leaves[0].cr = (uint8_t)(128 + hue_cr[hue]);
    for (int i = 0; i < 4; i++) {
        struct pixels_leaf *leaf = &pixels->leaves[PIXELS_LEAVES / 2 + i * 4];
        leaf->half_width = draw_between(&pixels->random, width / 8, width / 4);
        leaf->half_height = draw_between(&pixels->random, height / 8, height / 4);
        leaf->wave_x = frequency * cosine16[direction] / 2;
        leaf->wave_y = frequency * cosine16[(direction + 12) % 16] / 2;
        leaf->wave_height = draw_between(&pixels->random, 16, 40);
        leaf->cb = (uint8_t)(128 + hue_cb[hue_of_leaf]);
        leaf->cr = (uint8_t)(128 + hue_cr[hue_of_leaf]);
    }
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
    memset(pixels->light_before, 0, pixels->width * sizeof(int16_t));
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

/* Generate rows [top, top + PIXELS_STRIP) into luma, cb, cr. Call in order. */
static void pixels_strip(struct synthesis_pixels *pixels, uint32_t top)
{
    const struct pixels_octave *half = &pixels->octaves[1];
    const uint32_t width = pixels->width;
    int32_t from, to;

    for (uint32_t i = 0; i < PIXELS_STRIP; i++) {
        texture_row(pixels, 0, pixels->noise, top + i, width, pixels->fine_gain);
        for (int k = 0; k < PIXELS_LEAVES; k++) {
            const struct pixels_leaf *leaf = &pixels->leaves[k];
            const int32_t y = (int32_t)(top + i);
            if (!leaf_span(leaf, y, (int32_t)width, &from, &to))
                continue;
            int32_t light = leaf->light * 256;
            light += (from - leaf->x) * leaf->slope_x + (y - leaf->y) * leaf->slope_y;
            paint(pixels->light + from, to - from, light, leaf->slope_x,
                  from * leaf->wave_x + y * leaf->wave_y, leaf->wave_x, leaf->wave_height);
            memset(pixels->gain + from, leaf->gain, (size_t)(to - from));
        }
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
        for (int k = 0; k < PIXELS_LEAVES; k++) {
            const struct pixels_leaf *leaf = &pixels->leaves[k];
            if (!leaf_span(leaf, (int32_t)(2 * y), (int32_t)width / 2 * 2, &from, &to))
                continue;
            memset(pixels->cb[i] + from / 2, leaf->cb, (size_t)((to + 1) / 2 - from / 2));
            memset(pixels->cr[i] + from / 2, leaf->cr, (size_t)((to + 1) / 2 - from / 2));
        }
        tint(pixels->cb[i], pixels->cr[i], noise, noise + half->stride, width / 2, 48);
    }
}

const struct synthesis_settings synthesis_imagenet = {
    .seed = 1,
    .classes = 1000,
    .mean_bytes = 110000,
};

enum {
    IMAGENET_MEAN_BYTES = 110000,
    SIDE_MAX = 1600,    /* at ImageNet's mean */
    HEADER_BYTES = 623, /* of a JPEG with the standard tables */
    BUMP_BYTES = 2 << 20,
    BUMP_LIMIT_BYTES = 1 << 30,
};

/* Parameters of an image, drawn from its index before its pixels. */
struct layout {
    uint32_t width, height;
    uint32_t bytes;   /* target size; density is in 1/16 bit per pixel */
    uint32_t quality; /* libjpeg's scale of the quantisers in percent: 2 * (100 - quality) */
    int32_t detail;
};

struct synthesis {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    struct synthesis_settings settings;
    struct synthesis_pixels pixels;
    struct bump bump;
    bool created;
    uint32_t side_max;
    uint8_t *image;
    size_t image_capacity;
    char name[32];
    jmp_buf escape;
    char reason[JMSG_LENGTH_MAX];
};

/* ---- sizes, in integers so that every machine draws the same values ---- */

/* Return 2^(exponent / 65536) * scale; the fraction uses a cubic with an error of at most 0.02%. */
static uint64_t power_of_two(int64_t exponent, uint64_t scale)
{
    const int64_t whole = exponent >> 16, f = exponent & 0xffff;
    int64_t power = 5107; /* 0.0779 */

    power = (power * f >> 16) + 14743; /* 0.2250 */
    power = (power * f >> 16) + 45686; /* 0.6971 */
    power = (power * f >> 16) + 65536;
    uint64_t scaled = scale * (uint64_t)power >> 16;
    return whole < 0 ? scaled >> -whole : scaled << whole;
}

static uint32_t square_root(uint64_t value)
{
    uint64_t root = 0;

    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
        if ((root + bit) * (root + bit) <= value)
            root += bit;
    return (uint32_t)root;
}

static uint32_t limit(uint64_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : (uint32_t)value;
}

struct knot {
    int32_t x, y;
};

/* Interpolate linearly between knots of increasing x; constant beyond them. */
static int32_t interpolate(const struct knot *knots, int count, int32_t x)
{
    int i = 1;

    while (i < count - 1 && knots[i].x < x)
        i++;
    const struct knot a = knots[i - 1], b = knots[i];
    x = x < a.x ? a.x : x > b.x ? b.x : x;
    return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
}

/* The shape depends on the bytes only where it must: an image that would need more bits per pixel
 * than JPEGs have gets more pixels, and one that would need fewer gets fewer. */
static struct layout draw_layout(struct random *random, const struct synthesis *synthesis)
{
    /* Percent of the mean to aim at so that the result has this mean: the median is below the mean,
     * and small pictures have more edges per pixel than large ones. Measured. */
    static const struct knot aims[] = {{4000, 73},   {6000, 77},    {12000, 83},    {30000, 90},
                                       {110000, 99}, {400000, 109}, {1500000, 131}, {4000000, 155}};
    const uint64_t mean = synthesis->settings.mean_bytes;
    const uint64_t median = mean * (uint64_t)interpolate(aims, 8, (int32_t)mean) / 100;
    static const uint16_t shapes[][3] = {
        {45, 500, 375}, {62, 375, 500}, {74, 500, 333},
        {80, 333, 500}, {85, 500, 400}, {88, 500, 500},
    };
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    int64_t normal = -6 * 65536; /* nearly: the sum of twelve uniform numbers (Irwin-Hall), mean 0,
                                    deviation 65536 */
    struct layout layout;
    uint32_t shape = 0;

    for (int i = 0; i < 12; i++)
        normal += (int64_t)random_below(random, 65536);
    /* 0.43 / ln 2 = 0.6203 */
    layout.bytes = limit(power_of_two(normal * 6203 / 10000, median), (uint32_t)(mean / 12),
                         (uint32_t)(mean * 12));
    /* Most images of ImageNet are 500 pixels wide or high; one in ten has an arbitrary size. */
    const uint64_t draw = random_below(random, 100);
    while (shape < SHAPES && draw >= shapes[shape][0])
        shape++;
    const uint32_t width =
        shape < SHAPES ? shapes[shape][1] : 240 + (uint32_t)random_below(random, 400);
    const uint32_t height =
        shape < SHAPES ? shapes[shape][2] : width * (60 + (uint32_t)random_below(random, 90)) / 100;
    const uint32_t densest = 95 + (uint32_t)random_below(random, 30);
    const uint32_t thinnest = 20 + (uint32_t)random_below(random, 12);
    const uint64_t wanted = (uint64_t)width * height * mean / IMAGENET_MEAN_BYTES;
    const uint64_t bytes =
        layout.bytes > 2 * HEADER_BYTES ? layout.bytes - HEADER_BYTES : HEADER_BYTES;
    const uint32_t density = limit(bytes * 128 / wanted, thinnest, densest);
    /* Ratio of the pixels to those of the drawn shape, in 1/65536; its square root scales both
     * sides. */
    uint64_t scale = (bytes * 128 << 16) / density / ((uint64_t)width * height);
    if (density > thinnest && density < densest)
        scale = (mean << 16) / IMAGENET_MEAN_BYTES;
    const uint64_t side_scale = square_root(scale << 16);
    layout.width = limit((width * side_scale + 32768) >> 16, 32, synthesis->side_max);
    layout.height = limit((height * side_scale + 32768) >> 16, 32, synthesis->side_max);
    /* Choose the texture and quantiser that give about this many 1/16 bits per pixel. Measured on
     * generated pictures; the remaining deviation (a quarter) is part of the spread of sizes. */
    static const struct knot detail_factor[] = {
        {16, 70}, {24, 79}, {48, 100}, {96, 124}, {192, 150}};
    static const struct knot quality_of[] = {{18, 96}, {29, 48}, {47, 24},
                                             {68, 12}, {95, 6},  {112, 4}};
    uint32_t detail = (40 + (uint32_t)random_below(random, 33)) * density / 67;
    layout.detail = (int32_t)limit(detail, 24, 192);
    int32_t plain = (int32_t)density * 100 / interpolate(detail_factor, 5, layout.detail);
    layout.quality = (uint32_t)interpolate(quality_of, 6, plain);
    return layout;
}

/* ---- libjpeg callbacks ---- */

static void on_error(j_common_ptr jpeg)
{
    struct synthesis *synthesis = (struct synthesis *)(void *)jpeg;

    jpeg->err->format_message(jpeg, synthesis->reason);
    longjmp(synthesis->escape, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    (void)jpeg, (void)level;
}

static void destination_begin(j_compress_ptr jpeg)
{
    struct synthesis *synthesis = (struct synthesis *)(void *)jpeg;

    jpeg->dest->next_output_byte = synthesis->image;
    jpeg->dest->free_in_buffer = synthesis->image_capacity;
}

static boolean destination_full(j_compress_ptr jpeg)
{
    struct synthesis *synthesis = (struct synthesis *)(void *)jpeg;

    snprintf(synthesis->reason, sizeof synthesis->reason, "larger than %zu bytes",
             synthesis->image_capacity);
    longjmp(synthesis->escape, 1);
}

static void destination_end(j_compress_ptr jpeg)
{
    (void)jpeg;
}

/* ---- interface ---- */

static int open_parts(struct synthesis *synthesis)
{
    const uint64_t mean = synthesis->settings.mean_bytes;
    int code;

    synthesis->side_max = square_root((uint64_t)SIDE_MAX * SIDE_MAX * mean / IMAGENET_MEAN_BYTES);
    synthesis->side_max = limit(synthesis->side_max, 64, 16000);
    if ((code = pixels_open(&synthesis->pixels, synthesis->side_max + PIXELS_STRIP,
                            synthesis->side_max + PIXELS_STRIP)))
        return code;
    synthesis->image_capacity = mean * 40 + 65536;
    synthesis->image = memory_zeroed(synthesis->image_capacity);
    if (!synthesis->image)
        return -ENOMEM;
    if ((code = bump_open(&synthesis->bump, BUMP_BYTES, BUMP_LIMIT_BYTES)))
        return code;
    struct jpeg_compress_struct *jpeg = &synthesis->jpeg;
    jpeg->err = jpeg_std_error(&synthesis->errors);
    synthesis->errors.error_exit = on_error;
    synthesis->errors.emit_message = on_message;
    if (setjmp(synthesis->escape))
        return fail(ENOMEM, "libjpeg cannot start: %s", synthesis->reason);
    synthesis->created = true;
    jpeg_create_compress(jpeg);
    synthesis->destination = (struct jpeg_destination_mgr){
        .init_destination = destination_begin,
        .empty_output_buffer = destination_full,
        .term_destination = destination_end,
    };
    jpeg->dest = &synthesis->destination;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_YCbCr;
    jpeg_set_defaults(jpeg);
    jpeg->raw_data_in = TRUE;
    jpeg->dct_method = JDCT_ISLOW;
    return bump_serve_jpeg(&synthesis->bump, (struct jpeg_common_struct *)jpeg);
}

struct synthesis *synthesis_open(const struct synthesis_settings *settings)
{
    if (settings->classes < 1 || settings->classes > INT32_MAX) {
        fail(EINVAL, "synthetic images need 1 to %d classes", INT32_MAX);
        return NULL;
    }
    if (settings->mean_bytes < 4000 || settings->mean_bytes > 4000000) {
        fail(EINVAL, "synthetic images average 4000 to 4000000 bytes, not %u",
             settings->mean_bytes);
        return NULL;
    }
    struct synthesis *synthesis = memory_zeroed(sizeof *synthesis);
    if (!synthesis)
        return NULL;
    synthesis->settings = *settings;
    if (open_parts(synthesis)) {
        synthesis_close(synthesis);
        return NULL;
    }
    return synthesis;
}

void synthesis_close(struct synthesis *synthesis)
{
    if (!synthesis)
        return;
    if (synthesis->created)
        jpeg_destroy_compress(&synthesis->jpeg);
    bump_close(&synthesis->bump);
    for (int i = 1; i < PIXELS_OCTAVES; i++)
        free(synthesis->pixels.octaves[i].values);
    free(synthesis->pixels.rows);
    free(synthesis->pixels.gain);
    free(synthesis->pixels.luma[0]);
    free(synthesis->image);
    free(synthesis);
}

int32_t synthesis_label(const struct synthesis_settings *settings, uint64_t index)
{
    struct random random = random_start(random_hash(settings->seed, index, 0));

    return (int32_t)random_below(&random, settings->classes);
}

int synthesis_make(struct synthesis *synthesis, uint64_t index, struct sample *sample)
{
    const uint32_t strip = PIXELS_STRIP;
    const uint64_t seed = synthesis->settings.seed;
    struct random random = random_start(random_hash(seed, index, 1));
    const struct layout layout = draw_layout(&random, synthesis);
    const int32_t label = synthesis_label(&synthesis->settings, index);

    pixels_start(&synthesis->pixels, random_hash(seed, index, 2), (uint32_t)label,
                 (int32_t)((layout.width + strip - 1) / strip * strip),
                 (int32_t)((layout.height + strip - 1) / strip * strip), layout.detail);
    if (setjmp(synthesis->escape)) {
        jpeg_abort_compress(&synthesis->jpeg);
        return fail(EIO, "cannot generate image %llu: %s", (unsigned long long)index,
                    synthesis->reason);
    }
    struct jpeg_compress_struct *jpeg = &synthesis->jpeg;
    struct synthesis_pixels *pixels = &synthesis->pixels;
    JSAMPARRAY planes[3] = {pixels->luma, pixels->cb, pixels->cr};
    jpeg->image_width = layout.width;
    jpeg->image_height = layout.height;
    jpeg_set_linear_quality(jpeg, (int)layout.quality, TRUE);
    jpeg_start_compress(jpeg, TRUE);
    for (uint32_t top = 0; top < layout.height; top += PIXELS_STRIP) {
        pixels_strip(pixels, top);
        jpeg_write_raw_data(jpeg, planes, PIXELS_STRIP);
    }
    jpeg_finish_compress(jpeg);
    int name_bytes = snprintf(synthesis->name, sizeof synthesis->name, "%010llu.JPEG",
                              (unsigned long long)index);
    *sample = (struct sample){
        .image = synthesis->image,
        .image_bytes = synthesis->image_capacity - synthesis->destination.free_in_buffer,
        .label = label,
        .encoding = SAMPLE_ENCODED,
        .id = index,
        .name = synthesis->name,
        .name_bytes = (size_t)name_bytes,
    };
    return 0;
}
