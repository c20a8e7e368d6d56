/* SPDX-License-Identifier: Apache-2.0
 *
 * PNG, which occurs in JPEG data sets under JPEG names. Any PNG becomes 8-bit RGB: palettes and
 * grey are expanded, 16 bits reduced to 8, transparency is dropped. libpng and zlib allocate from
 * the bump allocator, so nothing needs freeing after an error.
 */
#include "decode/image.h"

#include "base/fail.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include <png.h>

struct png_reader {
    const struct image_request *request;
    png_structp png;
    png_infop header;
    size_t offset;
    jmp_buf escape;
    char reason[160];
};

static void on_error(png_structp png, png_const_charp message)
{
    struct png_reader *reader = png_get_error_ptr(png);

    snprintf(reader->reason, sizeof reader->reason, "%s", message);
    longjmp(reader->escape, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static png_voidp alloc_memory(png_structp png, png_alloc_size_t bytes)
{
    return bump_alloc(png_get_mem_ptr(png), bytes);
}

static void free_memory(png_structp png, png_voidp piece)
{
    (void)png, (void)piece;
}

static void read_bytes(png_structp png, png_bytep to, size_t bytes)
{
    struct png_reader *reader = png_get_io_ptr(png);
    const struct decode_source *source = reader->request->source;

    if (bytes > source->length - reader->offset)
        png_error(png, "the file ends early");
    memcpy(to, (const uint8_t *)source->bytes + reader->offset, bytes);
    reader->offset += bytes;
}

static int read_png(struct png_reader *reader)
{
    const struct image_request *request = reader->request;
    struct resize resize;
    int code;

    png_set_read_fn(reader->png, reader, read_bytes);
    /* Text and profile chunks may be compressed, 8 KB to 8 MB, and are never used. */
    png_set_keep_unknown_chunks(reader->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_user_limits(reader->png, UINT16_MAX, UINT16_MAX);
    png_read_info(reader->png, reader->header);
    uint32_t width = png_get_image_width(reader->png, reader->header);
    uint32_t height = png_get_image_height(reader->png, reader->header);
    if ((code = image_check_size(request, width, height)))
        return code;
    bool interlaced = png_get_interlace_type(reader->png, reader->header) != PNG_INTERLACE_NONE;
    png_structp png = reader->png;
    const int colour = png_get_color_type(png, reader->header);
    png_set_expand(png);
    png_set_strip_16(png);
    if (!(colour & PNG_COLOR_MASK_COLOR)) {
        reader->request->figures->grayscale++;
        png_set_gray_to_rgb(png);
    }
    /* Transparency keeps the fourth byte; images without it get one. */
    png_set_add_alpha(png, 0, PNG_FILLER_AFTER);
    png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->header);
    if (png_get_rowbytes(reader->png, reader->header) != (size_t)width * RESIZE_PIXEL_BYTES)
        return fail(EBADMSG, "unknown PNG pixel layout");
    if ((code = image_plan(request, &resize, width, height, 8)))
        return code;
    if ((code = resize_begin(&resize, 0, width, request->row)))
        return code;
    /* Interlaced images arrive in passes over the whole image, others row by row. */
    const size_t stride = (size_t)width * RESIZE_PIXEL_BYTES;
    struct bump *bump = reader->request->bump;
    uint8_t *rows[RESIZE_ROWS_MAX], **whole = NULL;
    uint8_t *pixels = bump_alloc_array(bump, interlaced ? height : 1, stride);
    if (!pixels)
        return -ENOMEM;
    if (interlaced) {
        whole = bump_alloc_array(bump, height, sizeof *whole);
        if (!whole)
            return -ENOMEM;
        for (uint32_t i = 0; i < height; i++)
            whole[i] = pixels + i * stride;
        png_read_image(reader->png, whole);
    } else {
        for (uint32_t i = 0; i < resize.row; i++)
            png_read_row(reader->png, pixels, NULL);
    }
    for (uint32_t count; (count = resize_want(&resize, rows));) {
        for (uint32_t i = 0; i < count; i++) {
            if (interlaced)
                memcpy(rows[i], whole[resize.row + i], stride);
            else
                png_read_row(reader->png, rows[i], NULL);
        }
        resize_give(&resize, count);
    }
    return 0;
}

int image_decode_png(const struct image_request *request)
{
    struct png_reader *reader = bump_alloc(request->bump, sizeof *reader);

    if (!reader)
        return -ENOMEM;
    *reader = (struct png_reader){.request = request};
    const bool whole = image_end_png(request->source->bytes, request->source->length);
    if (setjmp(reader->escape)) {
        if (request->bump->refused)
            return -ENOMEM;
        request->figures->truncated += !whole;
        return fail(EBADMSG, "the PNG cannot be decoded: %s", reader->reason);
    }
    reader->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning,
                                           request->bump, alloc_memory, free_memory);
    if (reader->png)
        reader->header = png_create_info_struct(reader->png);
    if (!reader->header)
        return fail(ENOMEM, "libpng: out of memory");
    /* The rows of the box may still be complete. */
    int code = whole || request->accepts_damaged ? read_png(reader) : 0;
    return code || whole ? code : image_judge(request, true, "the PNG is cut short");
}
