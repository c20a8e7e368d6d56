/* SPDX-License-Identifier: Apache-2.0
 *
 * progressive: all scans of a progressive image (ITU-T T.81, annex G), into coefficients of the
 * whole image, which are transformed afterwards as those of a baseline image are.
 *
 * Most blocks of most scans are empty, so a block without AC coefficients is a DC value and a mask
 * alone, and runs of such blocks cost nothing. What libjpeg would warn of, and what it would smooth
 * since bits are missing at the end, is left to it.
 */
#ifndef IOBENCH_DECODE_BASELINE_PROGRESSIVE_H
#define IOBENCH_DECODE_BASELINE_PROGRESSIVE_H

#include "decode/baseline/entropy.h"
#include "decode/baseline/huffman.h"

struct baseline;
struct baseline_plane;

/* All blocks of a plane, in rows. */
struct baseline_stored {
    size_t columns;
    int16_t *dc;
    uint64_t *nonzero; /* which AC coefficients are */
    int16_t (*ac)[64]; /* in zigzag order; undefined if none is */
};

/* A scan of AC coefficients [first, last] of one component, from bit `low` on. */
struct progressive_ac {
    struct entropy_stream *stream;
    const struct huffman_codes *codes;
    const struct baseline_stored *stored;
    uint8_t first, last, low;
    uint32_t *ended; /* blocks from here on that have no more codes in this scan */
};

static inline uint64_t progressive_band(const struct progressive_ac *ac)
{
    return ~UINT64_C(0) >> (63 - ac->last) >> ac->first << ac->first;
}

/* Decode blocks [index, end): the first bits of their coefficients, or one more. Returns false if a
 * byte is not as it must be, or missing. */
typedef bool progressive_decode_ac(const struct progressive_ac *ac, size_t index, size_t end);

/* Blocks of a plane: columns x rows, those of all MCUs. */
size_t baseline_progressive_blocks(const struct baseline *decoder,
                                   const struct baseline_plane *plane);

/* Return how many scans there are at most, from the data of the first to the end of the file. */
uint32_t baseline_progressive_scans(const uint8_t *from, const uint8_t *end);

/* Returns 0 or BASELINE_OTHER. */
int baseline_progressive_decode(struct baseline *decoder);

/* Return the coefficients of a block in zigzag order. flat: zeros, whose first may be set. */
static inline const int16_t *baseline_progressive_block(const struct baseline_stored *stored,
                                                        size_t index, int16_t *flat)
{
    int16_t *block = stored->nonzero[index] ? stored->ac[index] : flat;

    block[0] = stored->dc[index];
    return block;
}

#endif
