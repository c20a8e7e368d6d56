/* SPDX-License-Identifier: Apache-2.0
 *
 * EXIF 2.3, 4.6.4; TIFF 6.0, section 2. The upright pixel x, y is the stored pixel (y, x if they
 * swap), counted from the right or from below where flipped.
 */
#include "decode/orientation.h"

#include "base/bytes.h"

#include <assert.h>
#include <string.h>

enum { MARKER_APP1 = 0xe1, MARKER_SCAN = 0xda, EXIF_BYTES = 6, ENTRY_BYTES = 12, TAG = 0x0112 };

static const struct {
    bool swap, flip_x, flip_y;
} turns[9] = {
    [2] = {.flip_x = true},
    [3] = {.flip_x = true, .flip_y = true},
    [4] = {.flip_y = true},
    [5] = {.swap = true},
    [6] = {.swap = true, .flip_y = true},
    [7] = {.swap = true, .flip_x = true, .flip_y = true},
    [8] = {.swap = true, .flip_x = true},
};

static uint32_t number(const uint8_t *at, size_t bytes, bool is_little)
{
    uint32_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | at[is_little ? bytes - 1 - i : i];
    return value;
}

/* The first directory of a TIFF file. */
static unsigned read_tiff(const uint8_t *tiff, size_t bytes)
{
    if (bytes < 8 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
        return ORIENTATION_UPRIGHT;
    const bool is_little = tiff[0] == 'I';
    size_t at = number(tiff + 4, 4, is_little);
    if (at > bytes || bytes - at < 2)
        return ORIENTATION_UPRIGHT;
    uint32_t entries = number(tiff + at, 2, is_little);
    for (at += 2; entries > 0 && bytes - at >= ENTRY_BYTES; entries--, at += ENTRY_BYTES) {
        if (number(tiff + at, 2, is_little) != TAG)
            continue;
        const uint32_t value = number(tiff + at + 8, 2, is_little);
        return value >= 1 && value <= 8 ? value : ORIENTATION_UPRIGHT;
    }
    return ORIENTATION_UPRIGHT;
}

unsigned orientation_of_jpeg(const void *jpeg, size_t bytes)
{
    const uint8_t *image = jpeg;

    for (size_t at = 2; at + 4 <= bytes && image[at] == 0xff;) {
        if (image[at + 1] == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        const size_t length = bytes_be16(image + at + 2);
        if (image[at + 1] == MARKER_SCAN || length < 2 || length > bytes - at - 2)
            break;
        const uint8_t *data = image + at + 4;
        if (image[at + 1] == MARKER_APP1 && length >= 2 + EXIF_BYTES &&
            memcmp(data, "Exif\0\0", EXIF_BYTES) == 0)
            return read_tiff(data + EXIF_BYTES, length - 2 - EXIF_BYTES);
        at += 2 + length;
    }
    return ORIENTATION_UPRIGHT;
}

bool orientation_swaps(unsigned orientation)
{
    assert(orientation < sizeof turns / sizeof *turns);
    return turns[orientation].swap;
}

struct view_box orientation_stored_box(unsigned orientation, const struct view_box *box,
                                       uint32_t width, uint32_t height)
{
    const bool swap = turns[orientation].swap;
    assert(orientation < sizeof turns / sizeof *turns);
    struct view_box stored = {.x = swap ? box->y : box->x,
                              .y = swap ? box->x : box->y,
                              .width = swap ? box->height : box->width,
                              .height = swap ? box->width : box->height};

    if (turns[orientation].flip_x)
        stored.x = width - stored.x - stored.width;
    if (turns[orientation].flip_y)
        stored.y = height - stored.y - stored.height;
    return stored;
}

void orientation_turn(unsigned orientation, bool mirror, uint32_t side, const uint8_t *stored,
                      uint8_t *upright)
{
    assert(orientation < sizeof turns / sizeof *turns);
    for (uint32_t y = 0; y < side; y++) {
        for (uint32_t x = 0; x < side; x++) {
            const uint32_t seen = mirror ? side - 1 - x : x;
            uint32_t column = turns[orientation].swap ? y : seen;
            uint32_t row = turns[orientation].swap ? seen : y;
            column = turns[orientation].flip_x ? side - 1 - column : column;
            row = turns[orientation].flip_y ? side - 1 - row : row;
            memcpy(upright + ((size_t)y * side + x) * 3, stored + ((size_t)row * side + column) * 3,
                   3);
        }
    }
}
