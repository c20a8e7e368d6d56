/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/entry_points.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <assert.h>

enum { POINT_BYTES = 10, GROUP = 4, CRC_BYTES = 4 };

static uint32_t spacing_of(uint32_t mcu_rows)
{
    assert(mcu_rows > 0);
    return (mcu_rows + ENTRY_POINTS_MAX - 1) / ENTRY_POINTS_MAX;
}

static size_t group_offset(uint32_t group)
{
    return (size_t)group * (CRC_BYTES + GROUP * POINT_BYTES);
}

static size_t point_offset(uint32_t i)
{
    return group_offset(i / GROUP) + CRC_BYTES + i % GROUP * POINT_BYTES;
}

static size_t hint_bytes(uint32_t count)
{
    return count ? point_offset(count - 1) + POINT_BYTES : 0;
}

_Static_assert(ENTRY_POINTS_MAX *POINT_BYTES + (ENTRY_POINTS_MAX + GROUP - 1) / GROUP * CRC_BYTES <=
                   DECODE_HINT_MAX,
               "a hint has room for all points");

/* The CRC up to a point. */
struct seal {
    uint32_t crc;
    size_t done;
};

/* Returns false if the point is above the one before, or outside the image. */
static bool seal_point(struct seal *seal, const struct decode_source *source, const uint8_t *raw)
{
    const size_t end = (size_t)bytes_le32(raw) / 8 + 1;

    if (end < seal->done || end > source->length)
        return false;
    seal->crc = crc32c(seal->crc, (const uint8_t *)source->bytes + seal->done, end - seal->done);
    seal->crc = crc32c(seal->crc, raw, POINT_BYTES);
    seal->done = end;
    return true;
}

void entry_points_note(struct entry_points *notes, struct baseline *decoder, uint32_t mcu_rows)
{
    const uint32_t spacing = spacing_of(mcu_rows);

    notes->count = (mcu_rows - 1) / spacing;
    assert(notes->count <= ENTRY_POINTS_MAX);
    baseline_note_points(decoder, spacing, notes->points);
}

size_t entry_points_finish(const struct entry_points *notes, struct baseline *decoder,
                           const struct decode_source *source, uint8_t hint[DECODE_HINT_MAX])
{
    struct seal seal = {0, 0};

    if (source->length > UINT32_MAX / 8 || baseline_finish_points(decoder))
        return 0;
    for (uint32_t i = 0; i < notes->count; i++) {
        uint8_t *raw = hint + point_offset(i);
        const struct baseline_point *point = &notes->points[i];
        bytes_put_le32(raw, (uint32_t)point->bit);
        for (int j = 0; j < 3; j++)
            bytes_put_le16(raw + 4 + 2 * j, point->dc[j]);
        if (!seal_point(&seal, source, raw))
            return 0;
        bytes_put_le32(hint + group_offset(i / GROUP), seal.crc);
    }
    return hint_bytes(notes->count);
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
                             struct entry_points *found)
{
    const uint32_t spacing = spacing_of(mcu_rows), count = (mcu_rows - 1) / spacing;
    const uint8_t *hint = source->hint;
    struct seal seal = {0, 0};
    uint32_t i = 0;

    if (source->hint_bytes == 0)
        return ENTRY_NONE;
    if (source->hint_bytes != hint_bytes(count))
        return ENTRY_STALE;
    found->count = row / spacing < count ? row / spacing : count;
    if (found->count == 0)
        return ENTRY_NONE;
    for (; i < found->count || (i % GROUP && i < count); i++) {
        const uint8_t *raw = hint + point_offset(i);
        struct baseline_point *point = &found->points[i];
        *point = (struct baseline_point){.row = (i + 1) * spacing, .bit = bytes_le32(raw)};
        for (int j = 0; j < 3; j++)
            point->dc[j] = bytes_le16(raw + 4 + 2 * j);
        if (!seal_point(&seal, source, raw))
            return ENTRY_STALE;
    }
    return seal.crc == bytes_le32(hint + group_offset((i - 1) / GROUP)) ? ENTRY_FOUND : ENTRY_STALE;
}
