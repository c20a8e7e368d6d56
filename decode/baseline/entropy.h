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

#include "decode/baseline/markers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- tables ----
 *
 * Look-up tables that decode up to two symbols at once, with their values, and the end of
 * the block.
 *
 * A table is indexed by the next bits: as many as pay for the first-level cache that they occupy,
 * since every entry of a table is equally likely to be used. Its fields are read one by one: loads
 * are cheaper there than shifts.
 *
 * Flat tables have the same format and as many AC symbols as fit, all with value 0: for blocks of
 * which only the DC value matters.
 *
 * Skip tables are for blocks of which only the length matters: a quarter of the size, so that more
 * bits are an index, and all with the same number of them, so that an index need not wait until its
 * table is known. DC values are found by themselves, afterwards.
 *
 * Tables are cached by the contents of the DHT segments that define them, since most files of a
 * data set share theirs. */

enum { HUFFMAN_USED_MAX = 18 }; /* bits of an entry: a refill has three times as many */
enum { HUFFMAN_RARE = 64, HUFFMAN_CACHE = 8 };
enum { HUFFMAN_DC_BITS = 8, HUFFMAN_AC_BITS = 10, HUFFMAN_SKIP_BITS = 11, HUFFMAN_BITS_MAX = 12 };
enum { HUFFMAN_BLOCK_ENDS = 0x80 }; /* the sign of huffman_entry.bits */

/* An advance of HUFFMAN_RARE, which leaves any block, marks what must be decoded symbol by symbol:
 * long or invalid codes, and values that need more than HUFFMAN_USED_MAX bits in all. */
struct huffman_entry {
    uint8_t bits;     /* consumed, magnitude bits after the index included; HUFFMAN_BLOCK_ENDS */
    uint8_t position; /* of value 1, relative to the current one */
    uint16_t rest;    /* magnitude bits after the index: where they begin | count << 8, for BEXTR */
    uint16_t value1;  /* to which those bits are added */
    int8_t value2;    /* of the second symbol, just before the next position; 0: there is none */
    uint8_t advance;  /* of the position */
};

_Static_assert(sizeof(struct huffman_entry) == 8, "addressed by shifts");

enum { HUFFMAN_LENGTHS = 16 }; /* of codes: index + 1 bits */

/* The canonical code, for one symbol at a time. */
struct huffman_book {
    uint16_t
        end[HUFFMAN_LENGTHS]; /* first 16-bit prefix that is longer than codes of this length */
    int32_t first[HUFFMAN_LENGTHS]; /* of symbols[], minus the length's first code */
    uint8_t symbols[256];
};

/* A table is referred to by its address + 64 - (bits of its index). The low bits are the shift
 * count of the look-up, and entry 0 is HUFFMAN_AC_BITS bytes further. Indices of all tables have an
 * even number of bits: entries are aligned to two bytes. */
struct huffman_table {
    _Alignas(64) const struct huffman_book *book;
    uint8_t entries[64 + (sizeof(struct huffman_entry) << HUFFMAN_AC_BITS)];
};

typedef const uint8_t *huffman_reference;

/* Return the length of the code at the start of 16 bits; more than HUFFMAN_LENGTHS: none. All
 * lengths, as vectors, without a branch. By signs: gcc 12 adds up comparisons wrongly when it
 * compiles for sanitizers. */
static inline uint32_t huffman_book_length(const struct huffman_book *book, uint32_t prefix)
{
    uint32_t shorter = 0;

    for (int i = 0; i < HUFFMAN_LENGTHS; i++)
        shorter += (book->end[i] - 1U - prefix) >> 31;
    return shorter + 1;
}

/* Return the symbol of a code of this length. */
static inline uint8_t huffman_book_symbol(const struct huffman_book *book, uint32_t prefix,
                                          uint32_t length)
{
    return book->symbols[book->first[length - 1] + (int32_t)(prefix >> (HUFFMAN_LENGTHS - length))];
}

/* Return the value of `size` bits that begin after `length` bits. Signs are as likely as not: no
 * branch. */
static inline int32_t huffman_value(uint64_t bits, uint32_t length, uint32_t size)
{
    const int32_t magnitude = (int32_t)(bits << length >> 1 >> (63 - size));
    const int32_t low = (1 << size) - 1, is_negative = magnitude <= low >> 1;

    return magnitude - (low & -is_negative);
}

static inline const struct huffman_book *huffman_book_of(huffman_reference reference)
{
    const uintptr_t address = (uintptr_t)reference & ~(uintptr_t)63;

    return ((const struct huffman_table *)address)->book;
}

/* Entries: huffman_entry.bits | huffman_entry.advance << 8. */
struct huffman_skip {
    _Alignas(64) uint16_t entries[1 << HUFFMAN_SKIP_BITS];
    const struct huffman_book *book;
};

/* One code of an index: its length << 8 | symbol; 0 if it is longer or invalid. */
typedef uint16_t huffman_single;

struct huffman_singles {
    huffman_single at[1 << HUFFMAN_BITS_MAX];
};

/* A table by itself, one code a look-up, quick to build: for the scans of progressive images, each
 * of which has its own. */
struct huffman_codes {
    struct huffman_book book;
    struct huffman_singles singles;
};

/* All tables of one component. */
struct huffman {
    struct markers_table dc_source, ac_source;
    uint64_t last_use;
    bool has_flat, has_skip;
    struct huffman_book dc_book, ac_book;
    huffman_reference dc, ac, flat_dc, flat_ac;
    struct huffman_table dc_table, ac_table, flat_dc_table, flat_ac_table;
    struct huffman_skip skip_dc, skip_ac;
    huffman_single dc_singles[1 << HUFFMAN_DC_BITS];
};

struct huffman_cache {
    struct huffman_table stop_table;
    huffman_reference stop; /* nothing but HUFFMAN_RARE: after the last block */
    struct huffman_skip skip_stop;
    uint64_t use;
    struct huffman slots[HUFFMAN_CACHE];
};

void baseline_huffman_start(struct huffman_cache *cache);

/* Find or build the tables of a component. A cached set stays valid for the next HUFFMAN_CACHE - 1
 * calls. Returns NULL if a code is invalid, or if a value is too large for 8-bit samples. */
struct huffman *baseline_huffman_find(struct huffman_cache *cache, const struct markers_table *dc,
                                      const struct markers_table *ac);

/* Returns false if a code is invalid, or a value too large. */
bool baseline_huffman_list(struct huffman_codes *codes, const struct markers_table *table,
                           bool is_dc);

/* Build the tables that few images need. */
void baseline_huffman_want_flat(struct huffman *huffman);
void baseline_huffman_want_skip(struct huffman *huffman);

/* ---- streams ---- */

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
    uint64_t *nonzero; /* bit mask: which AC coefficients are not zero */
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
