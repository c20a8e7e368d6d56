/* SPDX-License-Identifier: Apache-2.0
 *
 * GIF by giflib: the first frame on its screen, as Pillow's convert("RGB") shows it: where the
 * frame does not reach, the transparent colour or the first one; transparency itself is dropped.
 */
#include "decode/image.h"

#include "base/fail.h"
#include "base/image_end.h"

#include <errno.h>
#include <string.h>

#include <gif_lib.h>

struct gif_input {
    const uint8_t *at;
    size_t left;
};

/* The screen: an index into the colours for each pixel. */
struct gif_screen {
    const ColorMapObject *colours;
    uint8_t *indices;
    uint32_t width;
};

static int read_input(GifFileType *gif, GifByteType *to, int bytes)
{
    struct gif_input *input = gif->UserData;
    const size_t count = (size_t)bytes < input->left ? (size_t)bytes : input->left;

    memcpy(to, input->at, count);
    input->at += count;
    input->left -= count;
    return (int)count;
}

/* Skip an extension; of one for the next image keep the transparent colour. */
static bool read_extension(GifFileType *gif, int *transparent)
{
    GraphicsControlBlock control;
    GifByteType *block;
    int function;

    if (DGifGetExtension(gif, &function, &block) != GIF_OK)
        return false;
    if (block && function == GRAPHICS_EXT_FUNC_CODE &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        *transparent = control.TransparentColor;
    while (block)
        if (DGifGetExtensionNext(gif, &block) != GIF_OK)
            return false;
    return true;
}

/* Go to the first image and read its description. */
static bool find_frame(GifFileType *gif, int *transparent)
{
    GifRecordType type;

    while (DGifGetRecordType(gif, &type) == GIF_OK) {
        if (type == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(gif) == GIF_OK;
        if (type != EXTENSION_RECORD_TYPE || !read_extension(gif, transparent))
            return false;
    }
    return false;
}

/* Interlaced frames come in four passes (GIF89a specification, appendix E). */
static bool read_frame(GifFileType *gif, const struct gif_screen *screen)
{
    static const struct {
        int first, step;
    } passes[] = {{0, 1}, {0, 8}, {4, 8}, {2, 4}, {1, 2}};
    const GifImageDesc *frame = &gif->Image;

    for (int pass = frame->Interlace ? 1 : 0; pass < (frame->Interlace ? 5 : 1); pass++) {
        for (int y = passes[pass].first; y < frame->Height; y += passes[pass].step) {
            uint8_t *row =
                screen->indices + (size_t)(frame->Top + y) * screen->width + (size_t)frame->Left;
            if (DGifGetLine(gif, row, frame->Width) != GIF_OK)
                return false;
        }
    }
    return true;
}

static void copy_row(const void *pixels, uint32_t y, uint32_t low, uint32_t high, uint8_t *to)
{
    const struct gif_screen *screen = pixels;
    const uint8_t *index = screen->indices + (size_t)y * screen->width + low;

    for (; low < high; low++, index++, to += RESIZE_PIXEL_BYTES) {
        static const GifColorType black;
        const GifColorType *colour =
            *index < screen->colours->ColorCount ? &screen->colours->Colors[*index] : &black;
        to[0] = colour->Red;
        to[1] = colour->Green;
        to[2] = colour->Blue;
    }
}

/* Returns 0, with *is_read whether the frame's pixels were all there, or an error. */
static int read_gif(const struct image_request *request, GifFileType *gif, bool *is_read)
{
    const uint32_t width = (uint32_t)gif->SWidth, height = (uint32_t)gif->SHeight;
    struct gif_screen screen = {.width = width};
    int transparent = NO_TRANSPARENT_COLOR, code = image_check_size(request, width, height);
    struct resize resize;

    if (code)
        return code;
    if (!find_frame(gif, &transparent))
        return fail(EBADMSG, "the GIF cannot be decoded: it has no readable image");
    const GifImageDesc *frame = &gif->Image;
    if (frame->Left < 0 || frame->Top < 0 || frame->Width <= 0 || frame->Height <= 0 ||
        frame->Left + frame->Width > gif->SWidth || frame->Top + frame->Height > gif->SHeight)
        return fail(EBADMSG, "the GIF cannot be decoded: its first image is not on its screen");
    screen.colours = frame->ColorMap ? frame->ColorMap : gif->SColorMap;
    if (!screen.colours)
        return fail(EBADMSG, "the GIF cannot be decoded: it has no colours");
    screen.indices = bump_alloc_array(request->bump, height, width);
    if (!screen.indices)
        return -ENOMEM;
    memset(screen.indices, transparent == NO_TRANSPARENT_COLOR ? 0 : transparent,
           (size_t)width * height);
    *is_read = read_frame(gif, &screen);
    if (!*is_read && !request->accepts_damaged)
        return 0;
    code = image_plan(request, &resize, width, height, 8);
    return code ? code : image_resize_rows(request, &resize, copy_row, &screen);
}

int image_decode_gif(const struct image_request *request)
{
    const struct decode_source *source = request->source;
    const bool is_whole = image_end_gif(source->bytes, source->length);
    struct gif_input input = {.at = source->bytes, .left = source->length};
    bool is_read = true;

    if (!is_whole && !request->accepts_damaged)
        return image_judge(request, true, "the GIF is cut short");
    int reason = 0;
    GifFileType *gif = DGifOpen(&input, read_input, &reason);
    if (!gif)
        return reason == D_GIF_ERR_NOT_ENOUGH_MEM
                   ? fail(ENOMEM, "giflib: out of memory")
                   : fail(EBADMSG, "the GIF cannot be decoded: no valid header");
    int code = read_gif(request, gif, &is_read);
    DGifCloseFile(gif, NULL);
    if (code || (is_whole && is_read))
        return code;
    return image_judge(request, !is_whole,
                       is_whole ? "the GIF is corrupt" : "the GIF is cut short");
}
