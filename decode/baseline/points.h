/* SPDX-License-Identifier: Apache-2.0
 *
 * points: the entry points of an image, in the making and in use.
 */
#ifndef IOBENCH_DECODE_BASELINE_POINTS_H
#define IOBENCH_DECODE_BASELINE_POINTS_H

#include "decode/baseline/baseline.h"
#include "decode/baseline/entropy.h"

/* In the making. */
struct baseline_notes {
    uint32_t spacing; /* of rows; 0: none are wanted */
    struct baseline_point *points;
    uint64_t bytes, stuffed; /* of the segment up to the last point; zeros stuffed there */
};

/* In use: those that are still to come. */
struct baseline_route {
    const struct baseline_point *next, *end;
};

void baseline_notes_begin_segment(struct baseline_notes *notes);

/* Note the point before a row, if it is wanted. segment: where the stream's begins in the file. */
void baseline_notes_add(struct baseline_notes *notes, uint32_t row, uint64_t segment,
                        const struct entropy_stream *stream, const uint16_t dc[3]);

/* Do rows and bits ascend, the bits within bytes [from, end) of the file? */
bool baseline_points_ascend(const struct baseline_point *points, uint32_t count, uint64_t from,
                            uint64_t end);

#endif
