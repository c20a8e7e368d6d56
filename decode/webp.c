/* SPDX-License-Identifier: Apache-2.0
 *
 * WebP, lossy and lossless, by libwebp, which allocates on its own while it decodes; animations are
 * refused. Transparency is dropped. Only the box is decoded to pixels.
 */
#include "decode/image.h"

#include "base/fail.h"

#include <errno.h>
#include <string.h>

#include <webp/decode.h>

/* Interpolated chroma reads a pixel beyond the box; libwebp rounds its corner down to even. */
enum { MARGIN = 2 };

struct webp_part {
    uint32_t left, top, width, height;
    size_t stride;
    uint8_t *pixels;
};

static uint32_t before(uint32_t low)
{
    return (low > MARGIN ? low - MARGIN : 0) & ~1U;
}

static uint32_t after(uint32_t high, uint32_t side)
{
    return high < side - MARGIN && side > MARGIN ? high + MARGIN : side;
}

static void copy_row(const void *pixels, uint32_t y, uint32_t low, uint32_t high, uint8_t *to)
{
    const struct webp_part *part = pixels;

    memcpy(to,
           part->pixels + (y - part->top) * part->stride +
               (size_t)(low - part->left) * RESIZE_PIXEL_BYTES,
           (size_t)(high - low) * RESIZE_PIXEL_BYTES);
}

int image_decode_webp(const struct image_request *request)
{
    const struct decode_source *source = request->source;
    const bool is_whole = image_end_webp(source->bytes, source->length);
    WebPDecoderConfig config;
    struct webp_part part;
    struct resize resize;
    int code;

    if (!WebPInitDecoderConfig(&config))
        return fail(ENOSYS, "libwebp has another version than its headers");
    if (!is_whole && !request->accepts_damaged)
        return image_judge(request, true, "the WebP is cut short");
    if (WebPGetFeatures(source->bytes, source->length, &config.input) != VP8_STATUS_OK)
        return fail(EBADMSG, "the WebP cannot be decoded: no valid header");
    if (config.input.has_animation)
        return fail(EBADMSG, "the WebP is animated");
    const uint32_t width = (uint32_t)config.input.width, height = (uint32_t)config.input.height;
    if ((code = image_check_size(request, width, height)) ||
        (code = image_plan(request, &resize, width, height, 8)))
        return code;
    part.left = before(resize.x.low);
    part.top = before(resize.y.low);
    part.width = after(resize.x.high, width) - part.left;
    part.height = after(resize.y.high, height) - part.top;
    part.stride = (size_t)part.width * RESIZE_PIXEL_BYTES;
    part.pixels = bump_alloc_array(request->bump, part.height, part.stride);
    if (!part.pixels)
        return -ENOMEM;
    memset(part.pixels, 0, part.stride * part.height); /* what a damaged image lacks is black */
    config.options.use_cropping = 1;
    config.options.crop_left = (int)part.left;
    config.options.crop_top = (int)part.top;
    config.options.crop_width = (int)part.width;
    config.options.crop_height = (int)part.height;
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = part.pixels;
    config.output.u.RGBA.stride = (int)part.stride;
    config.output.u.RGBA.size = part.stride * part.height;
    const VP8StatusCode status = WebPDecode(source->bytes, source->length, &config);
    if (status == VP8_STATUS_OUT_OF_MEMORY)
        return fail(ENOMEM, "libwebp: out of memory");
    if (status != VP8_STATUS_OK && !request->accepts_damaged)
        return image_judge(request, false, "the WebP is corrupt");
    code = image_resize_rows(request, &resize, copy_row, &part);
    if (code || (is_whole && status == VP8_STATUS_OK))
        return code;
    return image_judge(request, !is_whole,
                       is_whole ? "the WebP is corrupt" : "the WebP is cut short");
}
