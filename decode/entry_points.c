/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/entry_points.h"

#include "base/bytes.h"
#include "base/crc32c.h"

enum { POINT_BYTES = 14 };

_Static_assert(ENTRY_POINTS_MAX *POINT_BYTES <= DECODE_HINT_MAX, "a hint has room for all points");

static uint32_t spacing_of(uint32_t mcu_rows)
{
    return (mcu_rows + ENTRY_POINTS_MAX - 1) / ENTRY_POINTS_MAX;
}

/* crc: of the image up to the point. */
static uint32_t seal(uint32_t crc, uint32_t row, const uint8_t *point)
{
    uint8_t number[4];

    bytes_put_le32(number, row);
    return crc32c(crc32c(crc, number, sizeof number), point + 4, POINT_BYTES - 4);
}

static void put_point(uint8_t *to, const struct baseline_point *point, uint32_t crc)
{
    bytes_put_le32(to + 4, (uint32_t)point->bit);
    for (int i = 0; i < 3; i++)
        bytes_put_le16(to + 8 + 2 * i, point->dc[i]);
    bytes_put_le32(to, seal(crc, point->row, to));
}

void entry_points_note(struct entry_points *notes, struct baseline *decoder, uint32_t mcu_rows)
{
    const uint32_t spacing = spacing_of(mcu_rows);

    notes->count = (mcu_rows - 1) / spacing;
    baseline_note_points(decoder, spacing, notes->points);
}

size_t entry_points_finish(const struct entry_points *notes, struct baseline *decoder,
                           const struct decode_source *source, uint8_t hint[DECODE_HINT_MAX])
{
    uint32_t crc = 0;
    size_t done = 0;

    if (source->length > UINT32_MAX / 8 || baseline_finish_points(decoder))
        return 0;
    for (uint32_t i = 0; i < notes->count; i++) {
        const size_t end = (size_t)(notes->points[i].bit / 8) + 1;
        crc = crc32c(crc, (const uint8_t *)source->bytes + done, end - done);
        done = end;
        put_point(hint + i * POINT_BYTES, &notes->points[i], crc);
    }
    return (size_t)notes->count * POINT_BYTES;
}

size_t entry_points_make(struct baseline *decoder, struct bump *bump,
                         const struct decode_source *source, uint8_t hint[DECODE_HINT_MAX])
{
    const struct baseline_region corner = {0, 0, 1, 1};
    struct baseline_image image;
    struct entry_points notes;

    if (baseline_open(decoder, source->bytes, source->length, &image))
        return 0;
    void *memory = bump_alloc(bump, baseline_select(decoder, &corner));
    entry_points_note(&notes, decoder, image.mcu_rows);
    if (!memory || baseline_start(decoder, memory))
        return 0;
    return entry_points_finish(&notes, decoder, source, hint);
}

enum entry entry_points_find(const struct decode_source *source, uint32_t mcu_rows, uint32_t row,
                             struct baseline_point *point)
{
    const uint32_t spacing = spacing_of(mcu_rows), count = (mcu_rows - 1) / spacing;

    if (source->hint_bytes == 0)
        return ENTRY_NONE;
    if (source->hint_bytes != (size_t)count * POINT_BYTES)
        return ENTRY_STALE;
    if (row < spacing)
        return ENTRY_NONE;
    const uint32_t last = row / spacing < count ? row / spacing : count;
    const uint8_t *from = (const uint8_t *)source->hint + (size_t)(last - 1) * POINT_BYTES;
    *point = (struct baseline_point){.row = last * spacing, .bit = bytes_le32(from + 4)};
    for (int i = 0; i < 3; i++)
        point->dc[i] = bytes_le16(from + 8 + 2 * i);
    const size_t bytes = (size_t)(point->bit / 8) + 1;
    if (bytes > source->length ||
        seal(crc32c(0, source->bytes, bytes), point->row, from) != bytes_le32(from))
        return ENTRY_STALE;
    return ENTRY_FOUND;
}
