/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/points.h"

#include <string.h>

void baseline_notes_begin_segment(struct baseline_notes *notes)
{
    notes->bytes = notes->stuffed = 0;
}

/* Return the bits of the file from the segment's beginning: a stuffed zero follows every 0xff. */
static uint64_t stored_bits(struct baseline_notes *notes, const struct entropy_stream *stream)
{
    const uint64_t position = baseline_entropy_position(stream);
    const uint8_t *at = stream->start + notes->bytes, *const end = stream->start + position / 8;

    for (; (at = memchr(at, 0xff, (size_t)(end - at))); at++)
        notes->stuffed++;
    notes->bytes = position / 8;
    return notes->stuffed * 8 + position;
}

void baseline_notes_add(struct baseline_notes *notes, uint32_t row, uint64_t segment,
                        const struct entropy_stream *stream, const uint16_t dc[3])
{
    if (notes->spacing == 0 || row == 0 || row % notes->spacing)
        return;
    struct baseline_point *point = &notes->points[row / notes->spacing - 1];
    *point = (struct baseline_point){.row = row, .bit = segment * 8 + stored_bits(notes, stream)};
    memcpy(point->dc, dc, sizeof point->dc);
}

bool baseline_points_ascend(const struct baseline_point *points, uint32_t count, uint64_t from,
                            uint64_t end)
{
    struct baseline_point before = {.row = 0, .bit = from * 8};

    for (uint32_t i = 0; i < count; before = points[i++])
        if (points[i].row <= before.row || points[i].bit < before.bit || points[i].bit / 8 >= end)
            return false;
    return true;
}
