/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/image.h"

#include "base/fail.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

int image_check_size(const struct image_request *request, uint64_t width, uint64_t height)
{
    if (width == 0 || height == 0)
        return fail(EBADMSG, "the image has no pixels");
    if (!image_limits_size(request->limits, width, height))
        return fail(EBADMSG, "the image claims %llu x %llu pixels, more than max-pixels=%llu",
                    (unsigned long long)width, (unsigned long long)height,
                    (unsigned long long)request->limits->pixels);
    return 0;
}

int image_judge(const struct image_request *request, bool truncated, const char *why)
{
    request->figures->truncated += truncated;
    request->figures->corrupt += !truncated;
    int code = fail(EBADMSG, "%s", why);
    return request->accepts_damaged ? DECODE_DAMAGED : code;
}

struct view_box image_box(const struct image_request *request, uint32_t width, uint32_t height)
{
    const bool swaps = orientation_swaps(request->orientation);
    struct view_shown *shown = request->shown;

    shown->width = swaps ? height : width;
    shown->height = swaps ? width : height;
    shown->box = view_box(request->view, request->rules, shown->width, shown->height);
    return request->orientation == ORIENTATION_UPRIGHT
               ? shown->box
               : orientation_stored_box(request->orientation, &shown->box, width, height);
}

int image_plan(const struct image_request *request, struct resize *resize, uint32_t width,
               uint32_t height, uint32_t numerator)
{
    assert(width > 0 && height > 0 && numerator >= 1 && numerator <= 8);
    const struct view_box view = image_box(request, width, height);
    const double scale = numerator / 8.0;

    const struct resize_box box = {
        .x = view.x * scale,
        .y = view.y * scale,
        .width = view.width * scale,
        .height = view.height * scale,
        .image_width = (width * numerator + 7) / 8,
        .image_height = (height * numerator + 7) / 8,
        .mirror = view.mirror,
        .filter = request->filter,
    };

    return resize_plan(resize, &box, request->width, request->height, request->bump);
}

int image_resize_rows(const struct image_request *request, struct resize *resize,
                      image_copy_row *copy, const void *pixels)
{
    const uint32_t low = resize->x.low, high = resize->x.high;
    uint8_t *rows[RESIZE_ROWS_MAX];
    int code = resize_begin(resize, low, high - low, request->row);

    if (code)
        return code;
    for (uint32_t count; (count = resize_want(resize, rows));) {
        for (uint32_t i = 0; i < count; i++)
            copy(pixels, resize->row + i, low, high, rows[i]);
        resize_give(resize, count);
    }
    return 0;
}

/* ---- images stored as pixels: interleaved RGB, Caffe2's BGR, or Caffe's planes, blue first ----
 */

/* Write pixels [low, high) of a row of the image as red, green and blue, `stride` bytes apart. */
static void fill_row(const struct decode_source *source, uint32_t number, uint32_t low,
                     uint32_t high, uint8_t *row, ptrdiff_t stride)
{
    const size_t plane = (size_t)source->width * source->height;
    const uint8_t *bytes = source->bytes;
    const bool planes = source->layout == SAMPLE_RAW_CHW;
    const size_t channels = source->channels, step = planes ? 1 : channels;
    const uint8_t *pixel = bytes + ((size_t)number * source->width + low) * step;
    /* Offsets of red, green and blue from the pixel's address. */
    const bool reversed = source->layout == SAMPLE_RAW_HWC_BGR;
    const size_t red = channels == 1 ? 0 : planes ? 2 * plane : reversed ? 2 : 0;
    const size_t green = channels == 1 ? 0 : planes ? plane : 1;
    const size_t blue = channels == 1 || planes || reversed ? 0 : 2;

    for (uint32_t x = low; x < high; x++, pixel += step) {
        uint8_t *rgb = row + (ptrdiff_t)(x - low) * stride;
        rgb[0] = pixel[red];
        rgb[1] = pixel[green];
        rgb[2] = pixel[blue];
    }
}

static bool is_rgb(const struct decode_source *source)
{
    return source->layout == SAMPLE_RAW_HWC && source->channels == 3;
}

/* Copy into RGBX for the resize, which ignores the fourth byte: here the next pixel's first. */
static void spread_row(const void *pixels, uint32_t number, uint32_t low, uint32_t high,
                       uint8_t *row)
{
    const struct decode_source *source = pixels;
    const uint32_t last = high - 1;

    if (is_rgb(source)) {
        const uint8_t *pixel =
            (const uint8_t *)source->bytes + ((size_t)number * source->width + low) * 3;
        for (; low < last; low++, pixel += 3, row += RESIZE_PIXEL_BYTES)
            memcpy(row, pixel, RESIZE_PIXEL_BYTES);
    }
    fill_row(source, number, low, high, row, RESIZE_PIXEL_BYTES);
}

int image_decode_raw(const struct image_request *request)
{
    const struct decode_source *source = request->source;
    int code;

    request->figures->raw++;
    if (source->channels != 1 && source->channels != 3)
        return fail(EBADMSG, "raw image with %u channels, expected 1 or 3", source->channels);
    if ((code = image_check_size(request, source->width, source->height)))
        return code;
    if (source->length < (size_t)source->width * source->height * source->channels)
        return fail(EBADMSG, "raw image of %u x %u x %u has only %zu bytes", source->width,
                    source->height, source->channels, source->length);
    if (source->channels == 1)
        request->figures->grayscale++;
    const struct view_box box = image_box(request, source->width, source->height);
    if (box.width != request->width || box.height != request->height || box.x != floor(box.x) ||
        box.y != floor(box.y)) {
        struct resize resize;
        code = image_plan(request, &resize, source->width, source->height, 8);
        return code ? code : image_resize_rows(request, &resize, spread_row, source);
    }
    /* The box is as large as the row to write: no pixel is resized. */
    const uint32_t left = (uint32_t)box.x, top = (uint32_t)box.y, width = request->width;
    const size_t stride = (size_t)width * 3;
    for (uint32_t y = 0; y < request->height; y++) {
        uint8_t *row = request->row + y * stride;
        const size_t at = ((size_t)(top + y) * source->width + left) * 3;
        if (box.mirror)
            fill_row(source, top + y, left, left + width, row + stride - 3, -3);
        else if (is_rgb(source))
            memcpy(row, (const uint8_t *)source->bytes + at, stride);
        else
            fill_row(source, top + y, left, left + width, row, 3);
    }
    return 0;
}

int image_decode_netpbm(const struct image_request *request)
{
    struct image_request inner = *request;
    struct netpbm header;
    const char *why = netpbm_read(request->source->bytes, request->source->length, &header);

    if (why)
        return fail(EBADMSG, "the PPM cannot be decoded: %s", why);
    const struct decode_source pixels = {
        .bytes = (const uint8_t *)request->source->bytes + header.header_bytes,
        .length = request->source->length - header.header_bytes,
        .layout = SAMPLE_RAW_HWC,
        .width = header.width,
        .height = header.height,
        .channels = header.channels,
    };
    request->figures->truncated += pixels.length < netpbm_pixel_bytes(&header);
    inner.source = &pixels;
    return image_decode_raw(&inner);
}
