/* SPDX-License-Identifier: Apache-2.0
 *
 * entry_points: the hint of a baseline JPEG (decode/decoder.h): points at which decoding can begin
 * or go on, so that what is above a crop, or right of it, is not decoded.
 *
 * Up to 34 points; point i is that of MCU row (i + 1) x spacing, the spacing being MCU rows / 34,
 * rounded up. In groups of up to four, little-endian:
 *     u32 CRC-32C of the image up to and including the byte of the group's last point, in pieces
 *         that end with the byte of each point so far, each followed by the ten bytes below
 *     up to four times: u32 bit of the image, 3 x u16 DC predictors
 * A point follows from the bytes above it alone, so with the same CRC it is right, whatever
 * follows. A CRC is no signature: hints are taken only from files that are trusted like the data.
 */
#ifndef IOBENCH_DECODE_ENTRY_POINTS_H
#define IOBENCH_DECODE_ENTRY_POINTS_H

#include "base/heap.h"
#include "decode/baseline/baseline.h"
#include "decode/decoder.h"

enum { ENTRY_POINTS_MAX = 34 };

struct entry_points {
    struct baseline_point points[ENTRY_POINTS_MAX];
    uint32_t count;
};

/* Before baseline_start(): note them in passing. */
void entry_points_note(struct entry_points *notes, struct baseline *decoder, uint32_t mcu_rows);

/* After the last row that is needed: step over the rest of the scan, and make the hint. Returns its
 * bytes; 0 if the image can have no point: damaged, or too small or too large. */
size_t entry_points_finish(const struct entry_points *notes, struct baseline *decoder,
                           const struct decode_source *source, uint8_t hint[DECODE_HINT_MAX]);

/* Make the hint of an image that is not decoded. Returns its bytes; 0 also if it is not a baseline
 * JPEG. */
size_t entry_points_make(struct baseline *decoder, struct bump *bump,
                         const struct decode_source *source, uint8_t hint[DECODE_HINT_MAX]);

enum entry { ENTRY_NONE, ENTRY_FOUND, ENTRY_STALE };

/* Find the points up to a row of MCUs. Stale: the hint is not of these bytes. */
enum entry entry_points_find(const struct decode_source *source, uint32_t mcu_rows, uint32_t row,
                             struct entry_points *found);

#endif
