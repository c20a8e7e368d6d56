/* SPDX-License-Identifier: Apache-2.0
 *
 * entropy: the Huffman-coded data of a scan to coefficients.
 *
 * A run is a row of MCUs, or the part of it within a restart interval. Its blocks are one array of
 * coefficients, each block aligned to its size, so that the end of a block needs no branch: it is
 * rounding up a pointer, and the choice of the next table. The DC values are differences.
 */
#ifndef IOBENCH_DECODE_BASELINE_ENTROPY_H
#define IOBENCH_DECODE_BASELINE_ENTROPY_H

#include "decode/baseline/huffman.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ENTROPY_PADDING = 32 };    /* zero bytes after the data of a segment */
enum { ENTROPY_ALIGNMENT = 128 }; /* of coefficients: the bytes of a block */

/* The tables of one block; the DC table is that of the next block. */
struct entropy_block {
    huffman_reference ac, next_dc;
};

/* Bytes between two markers, stuffing removed. */
struct entropy_stream {
    const uint8_t *start, *next, *end;
    uint64_t bits;  /* the next ones, from the top */
    uint32_t count; /* of valid bits */
};

static inline uint64_t entropy_big_endian(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* Return the bits consumed. */
static inline uint64_t entropy_position(const struct entropy_stream *stream)
{
    return (uint64_t)(stream->next - stream->start) * 8 - stream->count;
}

/* Has the stream been consumed up to its last byte? */
static inline bool entropy_is_complete(const struct entropy_stream *stream)
{
    return (uint64_t)(stream->end - stream->start) * 8 - entropy_position(stream) < 8;
}

/* Store the state after a run. Returns false if it used bits that are not there. */
static inline bool entropy_stop(struct entropy_stream *stream, const uint8_t *next, uint64_t bits,
                                uint32_t count)
{
    stream->next = next;
    stream->bits = bits;
    stream->count = count & 63;
    return (size_t)(next - stream->start) * 8 - stream->count <=
           (size_t)(stream->end - stream->start) * 8;
}

/* Decode blocks into zeroed coefficients [out, end) in zigzag order. blocks[-1] has the first DC
 * table, the last block a table of nothing but HUFFMAN_RARE; the block after it is read, not used.
 * Returns false if a byte is not as it must be, or missing. */
typedef bool entropy_run(struct entropy_stream *stream, const struct entropy_block *blocks,
                         int16_t *out, const int16_t *end);

/* The same of a block to step over. */
struct entropy_skip_block {
    const struct huffman_skip *ac, *next_dc;
};

/* State of the stream where a block begins. */
struct entropy_mark {
    const uint8_t *next;
    size_t count; /* has garbage above its lowest six bits */
};

/* Step over blocks [blocks, end), likewise, and store where each begins, and where the last ends.
 */
typedef bool entropy_skip(struct entropy_stream *stream, const struct entropy_skip_block *blocks,
                          const struct entropy_skip_block *end, struct entropy_mark *marks);

/* Return the sum of the DC differences of every `stride`th of `count` blocks that were stepped
 * over. */
typedef uint32_t entropy_sum_dc(const struct entropy_stream *stream,
                                const struct entropy_mark *marks, size_t count, size_t stride,
                                const struct huffman *huffman);

struct entropy_symbol {
    uint32_t bits, advance; /* no bits: not valid */
};

/* ---- scans of a progressive image ---- */

/* A stream that is read code by code. */
struct bits {
    const uint8_t *next, *last;
    uint64_t bits; /* the next ones, from the top */
    uint32_t left; /* of them are valid */
};

static inline struct bits bits_begin(const struct entropy_stream *stream)
{
    return (struct bits){stream->next, stream->end + 8, stream->bits, stream->count};
}

/* Returns false if it used bits that are not there. */
static inline bool bits_end(const struct bits *bits, struct entropy_stream *stream)
{
    return entropy_stop(stream, bits->next, bits->bits, bits->left);
}

static inline bool bits_are_used_up(const struct bits *bits)
{
    return bits->next > bits->last;
}

/* Refill: at least 56 bits are valid then; past the end they are zeros, and bits_end() will fail.
 */
static inline void bits_refill(struct bits *bits)
{
    if (__builtin_expect(!bits_are_used_up(bits), 1)) {
        bits->bits |= entropy_big_endian(bits->next) >> bits->left;
        bits->next += (63 - bits->left) >> 3;
    }
    bits->left |= 56;
}

static inline void bits_drop(struct bits *bits, uint32_t count)
{
    bits->bits <<= count;
    bits->left -= count;
}

static inline uint32_t bits_take_one(struct bits *bits)
{
    if (bits->left == 0)
        bits_refill(bits);
    const uint32_t bit = (uint32_t)(bits->bits >> 63);
    bits_drop(bits, 1);
    return bit;
}

/* Return the next code as its length << 8 | symbol, or 0. */
static inline uint32_t bits_find_code(const struct bits *bits, const struct huffman_codes *codes)
{
    const uint32_t single = codes->singles.at[bits->bits >> (64 - HUFFMAN_BITS_MAX)];

    if (__builtin_expect(single != 0, 1))
        return single;
    const uint32_t prefix = (uint32_t)(bits->bits >> 48);
    const uint32_t length = huffman_book_length(&codes->book, prefix);
    return length > HUFFMAN_LENGTHS
               ? 0
               : length << 8 | huffman_book_symbol(&codes->book, prefix, length);
}

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

/* Decode blocks [index, end): the first bits of their coefficients, or one more. Returns false if
 * the scan is malformed or cut short. */
typedef bool progressive_decode_ac(const struct progressive_ac *ac, size_t index, size_t end);

#endif
