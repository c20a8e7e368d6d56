/* SPDX-License-Identifier: Apache-2.0
 *
 * huffman: look-up tables that decode up to two symbols at once, with their values, and the end of
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
 * data set share theirs.
 */
#ifndef IOBENCH_DECODE_BASELINE_HUFFMAN_H
#define IOBENCH_DECODE_BASELINE_HUFFMAN_H

#include "decode/baseline/markers.h"

#include <stdbool.h>
#include <stdint.h>

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

/* Known by its address + 64 - the bits of its index: a shift count, and where to find entry 0,
 * HUFFMAN_AC_BITS further. Indices of all tables have an even number of bits: entries are aligned
 * to two bytes. */
struct huffman_table {
    _Alignas(64) const struct huffman_book *book;
    uint8_t entries[64 + (sizeof(struct huffman_entry) << HUFFMAN_AC_BITS)];
};

typedef const uint8_t *huffman_reference;

static inline huffman_reference huffman_refer(const struct huffman_table *table, uint32_t bits)
{
    return (const uint8_t *)table + 64 - bits;
}

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

/* Build those that few images need. */
void baseline_huffman_want_flat(struct huffman *huffman);
void baseline_huffman_want_skip(struct huffman *huffman);

#endif
