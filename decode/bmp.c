/* SPDX-License-Identifier: Apache-2.0
 *
 * BMP without compression: the pixels that Pillow's convert("RGB") gives. Transparency is dropped.
 */
#include "decode/image.h"

#include "base/bmp.h"
#include "base/bytes.h"
#include "base/fail.h"

#include <errno.h>
#include <string.h>

struct bmp_picture {
    struct bmp header;
    const uint8_t *file;
    size_t bytes;
};

static void copy_colours(const struct bmp_picture *picture, const uint8_t *row, uint32_t low,
                         uint32_t high, uint8_t *to)
{
    const struct bmp *header = &picture->header;
    const uint32_t bits = header->bits, most = (1U << bits) - 1;

    for (uint32_t x = low; x < high; x++, to += RESIZE_PIXEL_BYTES) {
        const size_t bit = (size_t)x * bits; /* the leftmost pixel in the highest bits */
        const uint32_t index = row[bit / 8] >> (8 - bits - bit % 8) & most;
        const uint8_t *colour = picture->file + header->palette + (size_t)index * header->entry;
        const bool is_known = index < header->colours;
        for (int i = 0; i < 3; i++)
            to[i] = is_known ? colour[2 - i] : 0;
    }
}

/* Any width to 8 bits: rounded down, as Pillow does. */
static uint8_t masked(uint32_t pixel, uint32_t mask)
{
    const uint32_t low = mask & (0 - mask);

    return (uint8_t)((uint64_t)((pixel & mask) / low) * 255 / (mask / low));
}

static void copy_masked(const struct bmp_picture *picture, const uint8_t *row, uint32_t low,
                        uint32_t high, uint8_t *to)
{
    const struct bmp *header = &picture->header;

    for (uint32_t x = low; x < high; x++, to += RESIZE_PIXEL_BYTES) {
        const uint32_t pixel =
            header->bits == 16 ? bytes_le16(row + (size_t)x * 2) : bytes_le32(row + (size_t)x * 4);
        for (int i = 0; i < 3; i++)
            to[i] = masked(pixel, header->masks[i]);
    }
}

/* Rows of a damaged image that are not there are black. */
static void copy_row(const void *pixels, uint32_t y, uint32_t low, uint32_t high, uint8_t *to)
{
    const struct bmp_picture *picture = pixels;
    const struct bmp *header = &picture->header;
    const size_t number = header->top_down ? y : header->height - 1 - y;
    const size_t at = header->pixels + number * header->stride;

    if (at > picture->bytes || picture->bytes - at < header->stride) {
        memset(to, 0, (size_t)(high - low) * RESIZE_PIXEL_BYTES);
        return;
    }
    const uint8_t *row = picture->file + at;
    if (header->bits <= 8) {
        copy_colours(picture, row, low, high, to);
    } else if (header->bits != 24) {
        copy_masked(picture, row, low, high, to);
    } else {
        for (const uint8_t *bgr = row + (size_t)low * 3; low < high;
             low++, bgr += 3, to += RESIZE_PIXEL_BYTES)
            for (int i = 0; i < 3; i++)
                to[i] = bgr[2 - i];
    }
}

int image_decode_bmp(const struct image_request *request)
{
    struct bmp_picture picture = {.file = request->source->bytes, .bytes = request->source->length};
    const struct bmp *header = &picture.header;
    struct resize resize;
    const char *why = bmp_read(picture.file, picture.bytes, &picture.header);
    int code;

    if (why)
        return fail(EBADMSG, "%s", why);
    if ((code = image_check_size(request, header->width, header->height)))
        return code;
    const bool is_whole = bmp_bytes(header) <= picture.bytes;
    if (is_whole || request->accepts_damaged)
        code = image_plan(request, &resize, header->width, header->height, 8);
    if (code == 0 && (is_whole || request->accepts_damaged))
        code = image_resize_rows(request, &resize, copy_row, &picture);
    return code || is_whole ? code : image_judge(request, true, "the BMP is cut short");
}
