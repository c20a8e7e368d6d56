/* SPDX-License-Identifier: Apache-2.0
 *
 * markers: the headers of a JPEG, up to the entropy-coded data. Accepts only what the decoder can
 * decode and libjpeg accepts without a warning. Pure; input is hostile.
 */
#ifndef IOBENCH_DECODE_BASELINE_MARKERS_H
#define IOBENCH_DECODE_BASELINE_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MARKERS_COMPONENTS = 3, MARKERS_TABLES = 4 };

struct markers_component {
    uint8_t id, h, v, quantiser; /* as in the file */
    uint8_t dc, ac;              /* numbers of its Huffman tables */
};

/* A Huffman table as defined by DHT: codes per length, then symbols; zero after the last. */
struct markers_table {
    bool defined;
    uint8_t counts[16], symbols[256];
};

/* A scan of a progressive image: the bits from `low` on of coefficients [first, last] in zigzag
 * order; those from `high` on came before, unless it is 0. */
struct markers_pass {
    uint32_t count; /* components; 0: the image has ended */
    uint8_t components[MARKERS_COMPONENTS];
    uint8_t first, last, high, low;
};

struct markers {
    uint32_t width, height;
    uint32_t component_count;
    struct markers_component components[MARKERS_COMPONENTS];
    bool quantiser_defined[MARKERS_TABLES];
    uint16_t quantisers[MARKERS_TABLES][64]; /* natural order */
    struct markers_table dc[MARKERS_TABLES], ac[MARKERS_TABLES];
    uint32_t restart_interval;
    bool has_frame, has_jfif, has_adobe, is_progressive;
    struct markers_pass pass; /* of a progressive image */
    uint8_t adobe_transform;
    size_t scan; /* offset of the entropy-coded data */
};

extern const uint8_t baseline_markers_natural[64]; /* zigzag position to natural position */

/* Parse up to the entropy-coded data. Returns 0 or BASELINE_OTHER. */
int baseline_markers_parse(struct markers *markers, const uint8_t *bytes, size_t count);
/* Go on at a marker, up to the data of the next scan or to the image's end. */
int baseline_markers_next_pass(struct markers *markers, const uint8_t *bytes, size_t count,
                               size_t at);

#endif
