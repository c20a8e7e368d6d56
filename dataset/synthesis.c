/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/synthesis.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/bump.h"
#include "dataset/synthesis_pixels.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

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

/* Return a nearly normal value: the sum of twelve uniform numbers (Irwin-Hall), mean 0, deviation
 * 65536. */
static int64_t normal_q16(struct random *random)
{
    int64_t sum = -6 * 65536;

    for (int i = 0; i < 12; i++)
        sum += (int64_t)random_below(random, 65536);
    return sum;
}

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

/* Most images of ImageNet are 500 pixels wide or high; one in ten has an arbitrary size. */
static void draw_shape(struct random *random, uint32_t *width, uint32_t *height)
{
    static const uint16_t shapes[][3] = {
        {45, 500, 375}, {62, 375, 500}, {74, 500, 333},
        {80, 333, 500}, {85, 500, 400}, {88, 500, 500},
    };
    uint64_t draw = random_below(random, 100);

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (draw < shapes[i][0]) {
            *width = shapes[i][1];
            *height = shapes[i][2];
            return;
        }
    *width = 240 + (uint32_t)random_below(random, 400);
    *height = *width * (60 + (uint32_t)random_below(random, 90)) / 100;
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
    struct layout layout;
    uint32_t width, height;

    /* 0.43 / ln 2 = 0.6203 */
    layout.bytes = limit(power_of_two(normal_q16(random) * 6203 / 10000, median),
                         (uint32_t)(mean / 12), (uint32_t)(mean * 12));
    draw_shape(random, &width, &height);
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
    (void)jpeg;
    (void)level;
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
    pixels_close(&synthesis->pixels);
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
                 (layout.width + strip - 1) / strip * strip,
                 (layout.height + strip - 1) / strip * strip, layout.detail);
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
