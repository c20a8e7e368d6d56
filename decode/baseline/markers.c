/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/markers.h"

#include "decode/baseline/baseline.h"

#include <string.h>

enum {
    M_SOF0 = 0xc0,
    M_SOF1 = 0xc1,
    M_SOF2 = 0xc2,
    M_DHT = 0xc4,
    M_SOI = 0xd8,
    M_EOI = 0xd9,
    M_SOS = 0xda,
    M_DQT = 0xdb,
    M_DRI = 0xdd,
    M_APP0 = 0xe0,
    M_APP14 = 0xee,
    M_APP15 = 0xef,
    M_COM = 0xfe,
};

enum { SIDE_MAX = 65500, MCU_BLOCKS_MAX = 10, PASS_LOW_MOST = 13 };

const uint8_t baseline_markers_natural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* The rest of one segment. */
struct markers_segment {
    const uint8_t *at;
    size_t left;
};

static uint32_t be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static const uint8_t *take_bytes(struct markers_segment *segment, size_t count)
{
    const uint8_t *at = segment->at;

    if (segment->left < count)
        return NULL;
    segment->at += count;
    segment->left -= count;
    return at;
}

static int parse_quantisers(struct markers *markers, struct markers_segment segment)
{
    while (segment.left > 0) {
        const uint32_t head = *take_bytes(&segment, 1), wide = head >> 4, number = head & 15;
        const uint8_t *values = take_bytes(&segment, (size_t)64 << (wide & 1));
        if (!values || wide > 1 || number >= MARKERS_TABLES)
            return BASELINE_OTHER;
        for (uint32_t i = 0; i < 64; i++)
            markers->quantisers[number][baseline_markers_natural[i]] =
                (uint16_t)(wide ? be16(values + 2 * i) : values[i]);
        markers->quantiser_defined[number] = true;
    }
    return 0;
}

static int parse_huffman(struct markers *markers, struct markers_segment segment)
{
    while (segment.left > 0) {
        const uint32_t head = *take_bytes(&segment, 1), number = head & 15;
        const uint8_t *counts = take_bytes(&segment, 16);
        uint32_t symbols = 0;
        if (!counts || head >> 4 > 1 || number >= MARKERS_TABLES)
            return BASELINE_OTHER;
        for (int i = 0; i < 16; i++)
            symbols += counts[i];
        const uint8_t *values = symbols <= 256 ? take_bytes(&segment, symbols) : NULL;
        if (!values)
            return BASELINE_OTHER;
        struct markers_table *table = head >> 4 ? &markers->ac[number] : &markers->dc[number];
        *table = (struct markers_table){.defined = true};
        memcpy(table->counts, counts, 16);
        memcpy(table->symbols, values, symbols);
    }
    return 0;
}

static int parse_frame(struct markers *markers, struct markers_segment segment)
{
    const uint8_t *head = take_bytes(&segment, 6);
    uint32_t blocks = 0;

    if (!head || markers->has_frame || head[0] != 8)
        return BASELINE_OTHER;
    markers->has_frame = true;
    markers->height = be16(head + 1);
    markers->width = be16(head + 3);
    markers->component_count = head[5];
    if (markers->height == 0 || markers->height > SIDE_MAX || markers->width == 0 ||
        markers->width > SIDE_MAX)
        return BASELINE_OTHER;
    if ((head[5] != 1 && head[5] != 3) || segment.left != 3 * (size_t)head[5])
        return BASELINE_OTHER;
    for (uint32_t i = 0; i < markers->component_count; i++) {
        const uint8_t *at = take_bytes(&segment, 3);
        struct markers_component *component = &markers->components[i];
        *component = (struct markers_component){at[0], at[1] >> 4, at[1] & 15, at[2], 0, 0};
        if (component->h < 1 || component->h > 4 || component->v < 1 || component->v > 4)
            return BASELINE_OTHER;
        for (uint32_t j = 0; j < i; j++)
            if (markers->components[j].id == component->id)
                return BASELINE_OTHER;
        blocks += (uint32_t)component->h * component->v;
    }
    return markers->component_count > 1 && blocks > MCU_BLOCKS_MAX ? BASELINE_OTHER : 0;
}

/* A scan of all components or, of a progressive image, of one. */
static int parse_scan(struct markers *markers, struct markers_segment segment)
{
    const bool is_progressive = markers->is_progressive;
    const uint8_t *count = take_bytes(&segment, 1);
    struct markers_pass *pass = &markers->pass;

    if (!count || !markers->has_frame ||
        (*count != markers->component_count && !(is_progressive && *count == 1)) ||
        segment.left != 2 * (size_t)*count + 3)
        return BASELINE_OTHER;
    pass->count = *count;
    uint8_t at = 0; /* of the frame's components */
    for (uint32_t i = 0; i < pass->count; i++, at++) {
        const uint8_t *source = take_bytes(&segment, 2);
        while (at < markers->component_count && markers->components[at].id != source[0])
            at++;
        if (at == markers->component_count)
            return BASELINE_OTHER;
        struct markers_component *component = &markers->components[at];
        component->dc = source[1] >> 4;
        component->ac = source[1] & 15;
        if (component->dc >= MARKERS_TABLES || component->ac >= MARKERS_TABLES ||
            component->quantiser >= MARKERS_TABLES ||
            !markers->quantiser_defined[component->quantiser])
            return BASELINE_OTHER;
        if (!is_progressive &&
            (!markers->dc[component->dc].defined || !markers->ac[component->ac].defined))
            return BASELINE_OTHER;
        pass->components[i] = at;
    }
    const uint8_t *rest = take_bytes(&segment, 3); /* first and last coefficient, bit positions */
    if (!is_progressive)
        return rest[0] == 0 && rest[1] == 63 && rest[2] == 0 ? 0 : BASELINE_OTHER;
    pass->first = rest[0];
    pass->last = rest[1];
    pass->high = rest[2] >> 4;
    pass->low = rest[2] & 15;
    const bool fits =
        pass->first == 0 ? pass->last == 0 : pass->count == 1 && pass->first <= pass->last;
    return fits && pass->last < 64 && pass->low <= PASS_LOW_MOST &&
                   (pass->high == 0 || pass->low == pass->high - 1)
               ? 0
               : BASELINE_OTHER;
}

static int parse_segment(struct markers *markers, uint32_t marker, struct markers_segment segment)
{
    switch (marker) {
    case M_SOF0:
    case M_SOF1:
        return parse_frame(markers, segment);
    case M_SOF2:
        markers->is_progressive = true;
        return parse_frame(markers, segment);
    case M_DHT:
        return parse_huffman(markers, segment);
    case M_DQT:
        return parse_quantisers(markers, segment);
    case M_DRI:
        if (segment.left != 2)
            return BASELINE_OTHER;
        markers->restart_interval = be16(segment.at);
        return 0;
    case M_SOS:
        return parse_scan(markers, segment);
    default:
        if ((marker >= M_APP0 && marker <= M_APP15) || marker == M_COM) {
            if (marker == M_APP0 && segment.left >= 14 && memcmp(segment.at, "JFIF", 5) == 0) {
                markers->has_jfif = true;
                if (segment.at[5] != 1) /* a version that libjpeg warns of */
                    return BASELINE_OTHER;
            }
            if (marker == M_APP14 && segment.left >= 12 && memcmp(segment.at, "Adobe", 5) == 0) {
                markers->has_adobe = true;
                markers->adobe_transform = segment.at[11];
            }
            return 0;
        }
        return BASELINE_OTHER;
    }
}

/* The colour space that libjpeg assumes: YCbCr unless the file says or suggests otherwise. */
static bool is_ycc(const struct markers *markers)
{
    const struct markers_component *c = markers->components;

    if (markers->has_jfif)
        return true;
    if (markers->has_adobe)
        return markers->adobe_transform == 1;
    return !(c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B');
}

int baseline_markers_next_pass(struct markers *markers, const uint8_t *bytes, size_t count,
                               size_t at)
{
    for (;;) {
        if (at >= count || bytes[at] != 0xff)
            return BASELINE_OTHER;
        while (at < count && bytes[at] == 0xff) /* any number of fill bytes */
            at++;
        if (markers->scan && at < count && bytes[at] == M_EOI) {
            markers->pass.count = 0;
            return 0;
        }
        if (count - at < 3)
            return BASELINE_OTHER;
        const uint32_t marker = bytes[at++], length = be16(bytes + at);
        /* What would change an image between its scans is left: quantisers, the frame, colours. */
        if (length < 2 || length > count - at ||
            (markers->scan && marker != M_SOS && marker != M_DHT && marker != M_DRI &&
             marker != M_COM && (marker <= M_APP0 || marker > M_APP15 || marker == M_APP14)))
            return BASELINE_OTHER;
        if (parse_segment(markers, marker, (struct markers_segment){bytes + at + 2, length - 2}))
            return BASELINE_OTHER;
        at += length;
        if (marker == M_SOS) {
            markers->scan = at;
            return 0;
        }
    }
}

int baseline_markers_parse(struct markers *markers, const uint8_t *bytes, size_t count)
{
    *markers = (struct markers){0};
    if (count < 4 || bytes[0] != 0xff || bytes[1] != M_SOI ||
        baseline_markers_next_pass(markers, bytes, count, 2))
        return BASELINE_OTHER;
    return markers->component_count == 3 && !is_ycc(markers) ? BASELINE_OTHER : 0;
}
