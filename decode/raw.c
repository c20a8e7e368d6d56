/* SPDX-License-Identifier: Apache-2.0
 * Images stored as raw pixels: interleaved RGB, Caffe2's interleaved BGR, or Caffe's planes in the
 * order blue, green, red.
 */
#include "decode/image.h"

#include "base/fail.h"
#include "base/image_header.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Write pixels [low, high) of a row of the image as red, green and blue, `stride` bytes apart. */
static void fill_row(const struct decode_source *source, uint32_t number, uint32_t low,
                     uint32_t high, uint8_t *row, ptrdiff_t stride)
{
    const size_t plane = (size_t)source->width * source->height;
    const uint8_t *bytes = source->bytes;
    const bool planes = source->layout == DECODE_RAW_CHW_BGR;
    const size_t channels = source->channels, step = planes ? 1 : channels;
    const uint8_t *pixel = bytes + ((size_t)number * source->width + low) * step;
    /* Offsets of red, green and blue from the pixel's address. */
    const bool reversed = source->layout == DECODE_RAW_HWC_BGR;
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
    return source->layout == DECODE_RAW_HWC_RGB && source->channels == 3;
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
        .layout = DECODE_RAW_HWC_RGB,
        .width = header.width,
        .height = header.height,
        .channels = header.channels,
    };
    request->figures->truncated += pixels.length < netpbm_pixel_bytes(&header);
    inner.source = &pixels;
    return image_decode_raw(&inner);
}
