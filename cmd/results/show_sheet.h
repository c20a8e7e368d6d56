/* SPDX-License-Identifier: Apache-2.0
 *
 * show_sheet: a picture of samples in cells: on the left the whole image with the box that training
 * uses, on the right the row that the trainer gets. Written as PNG. One thread.
 */
#ifndef IOBENCH_CMD_SHOW_SHEET_H
#define IOBENCH_CMD_SHOW_SHEET_H

#include "decode/view.h"

#include <stddef.h>
#include <stdint.h>

struct show_sheet {
    uint32_t thumb, side;           /* of a whole image and of a row, in pixels */
    uint32_t columns, rows, count;  /* cells */
    uint32_t width, height, across; /* of the sheet; columns to the next cell */
    uint8_t *pixels;                /* RGB */
};

/* Returns 0 or -ENOMEM. Close in either case. */
int sheet_open(struct show_sheet *sheet, uint32_t count, uint32_t thumb, uint32_t side);
void sheet_close(struct show_sheet *sheet);

/* Fill cell i. whole: thumb x thumb RGB pixels of the whole image, stretched to a square; NULL: it
 * cannot be decoded. row: side x side pixels of the box, or NULL: crossed out. */
void sheet_show(struct show_sheet *sheet, uint32_t i, const uint8_t *whole, const uint8_t *row,
                const struct view_shown *shown);

/* Encode as PNG, for the caller to free. Returns 0 or -ENOMEM. */
int sheet_png(const struct show_sheet *sheet, char **png, size_t *bytes);

#endif
