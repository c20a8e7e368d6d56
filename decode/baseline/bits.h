/* SPDX-License-Identifier: Apache-2.0
 *
 * bits: reads a stream code by code, for the scans of progressive images.
 */
#ifndef IOBENCH_DECODE_BASELINE_BITS_H
#define IOBENCH_DECODE_BASELINE_BITS_H

#include "decode/baseline/entropy.h"

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

#endif
