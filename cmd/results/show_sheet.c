/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/results/show_sheet.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/text_stream.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

enum { GAP = 8, LINE = 2, PIXEL_BYTES = 3 };

static const uint8_t paper[PIXEL_BYTES] = {255, 255, 255};
static const uint8_t box_colour[PIXEL_BYTES] = {255, 64, 0};
static const uint8_t cross_colour[PIXEL_BYTES] = {96, 96, 96};

static uint8_t *pixel_at(const struct show_sheet *sheet, uint32_t x, uint32_t y)
{
    return sheet->pixels + ((size_t)y * sheet->width + x) * PIXEL_BYTES;
}

static uint32_t cell_height(const struct show_sheet *sheet)
{
    return sheet->thumb > sheet->side ? sheet->thumb : sheet->side;
}

static uint32_t cell_x(const struct show_sheet *sheet, uint32_t i)
{
    return GAP + i % sheet->columns * sheet->across;
}

static uint32_t cell_y(const struct show_sheet *sheet, uint32_t i)
{
    return GAP + i / sheet->columns * (cell_height(sheet) + GAP);
}

int sheet_open(struct show_sheet *sheet, uint32_t count, uint32_t thumb, uint32_t side)
{
    *sheet = (struct show_sheet){.thumb = thumb, .side = side, .count = count};
    sheet->across = thumb + GAP + side + 2 * GAP;
    sheet->columns = (uint32_t)ceil(sqrt(count / 2.0)); /* a cell is twice as wide as high */
    sheet->rows = (count + sheet->columns - 1) / sheet->columns;
    sheet->width = sheet->columns * sheet->across;
    sheet->height = GAP + sheet->rows * (cell_height(sheet) + GAP);
    sheet->pixels = memory_array((size_t)sheet->width * sheet->height, PIXEL_BYTES);
    if (!sheet->pixels)
        return -ENOMEM;
    memset(sheet->pixels, paper[0], (size_t)sheet->width * sheet->height * PIXEL_BYTES);
    return 0;
}

void sheet_close(struct show_sheet *sheet)
{
    free(sheet->pixels);
    sheet->pixels = NULL;
}

static void fill(struct show_sheet *sheet, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
                 const uint8_t *colour)
{
    for (uint32_t row = y; row < y + height; row++)
        for (uint32_t column = x; column < x + width; column++)
            memcpy(pixel_at(sheet, column, row), colour, PIXEL_BYTES);
}

static void draw_whole(struct show_sheet *sheet, uint32_t i, const uint8_t *whole,
                       const struct view_shown *shown)
{
    const uint32_t x = cell_x(sheet, i), y = cell_y(sheet, i);
    uint32_t width, height;

    /* Size of the whole image with its own aspect ratio, which fits into the square. */
    const double longer = shown->width > shown->height ? shown->width : shown->height;
    width = (uint32_t)fmax(1, nearbyint(sheet->thumb * shown->width / longer));
    height = (uint32_t)fmax(1, nearbyint(sheet->thumb * shown->height / longer));
    for (uint32_t at = 0; at < height; at++) {
        const uint8_t *line =
            whole + (size_t)(at * sheet->thumb / height) * sheet->thumb * PIXEL_BYTES;
        for (uint32_t column = 0; column < width; column++)
            memcpy(pixel_at(sheet, x + column, y + at),
                   line + (size_t)(column * sheet->thumb / width) * PIXEL_BYTES, PIXEL_BYTES);
    }
    /* Draw the box within a width x height picture at x, y. */
    const double scale_x = (double)width / shown->width, scale_y = (double)height / shown->height;
    const uint32_t left = (uint32_t)(shown->box.x * scale_x);
    const uint32_t top = (uint32_t)(shown->box.y * scale_y);
    uint32_t across = (uint32_t)ceil(shown->box.width * scale_x);
    uint32_t down = (uint32_t)ceil(shown->box.height * scale_y);
    across = left + across > width ? width - left : across;
    down = top + down > height ? height - top : down;
    const uint32_t thick = across > LINE && down > LINE ? LINE : 1;
    fill(sheet, x + left, y + top, across, thick, box_colour);
    fill(sheet, x + left, y + top + down - thick, across, thick, box_colour);
    fill(sheet, x + left, y + top, thick, down, box_colour);
    fill(sheet, x + left + across - thick, y + top, thick, down, box_colour);
}

void sheet_show(struct show_sheet *sheet, uint32_t i, const uint8_t *whole, const uint8_t *row,
                const struct view_shown *shown)
{
    const uint32_t x = cell_x(sheet, i) + sheet->thumb + GAP, y = cell_y(sheet, i);

    if (whole)
        draw_whole(sheet, i, whole, shown);
    for (uint32_t at = 0; row && at < sheet->side; at++)
        memcpy(pixel_at(sheet, x, y + at), row + (size_t)at * sheet->side * PIXEL_BYTES,
               (size_t)sheet->side * PIXEL_BYTES);
    if (!row) {
        for (uint32_t at = 0; at + LINE <= sheet->side; at++) {
            fill(sheet, x + at, y + at, LINE, LINE, cross_colour);
            fill(sheet, x + sheet->side - LINE - at, y + at, LINE, LINE, cross_colour);
        }
    }
}

int sheet_png(const struct show_sheet *sheet, char **png, size_t *bytes)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = sheet->width,
                       .height = sheet->height,
                       .format = PNG_FORMAT_RGB};
    struct text_stream stream;

    if (text_stream_open(&stream))
        return -ENOMEM;
    const bool written = png_image_write_to_stdio(&image, stream.stream, 0, sheet->pixels, 0, NULL);
    const int code = text_stream_take(&stream, png, bytes);
    if (code || written)
        return code;
    free(*png);
    *png = NULL;
    return fail(ENOMEM, "libpng cannot write the picture: %s", image.message);
}
