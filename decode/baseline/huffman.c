/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/huffman.h"

#include <string.h>

enum { DC_BITS_MAX = 11, AC_BITS_MAX = 10 }; /* magnitudes of 8-bit samples */
enum { ENTRIES = 1 << HUFFMAN_BITS, BLOCK_ENDS = 0x80, VALUE_2_BITS = 7, ADVANCE_MAX = 63 };

/* What one code says. */
struct huffman_symbol {
    uint32_t code_bits, run, size;
    bool ends; /* of the block */
};

/* One symbol per index: code length << 8 | symbol; 0 if the code is longer or invalid. */
struct huffman_singles {
    uint16_t at[ENTRIES];
};

static uint64_t pack(uint32_t bits, uint32_t rest, uint32_t position, uint32_t advance,
                     int32_t value1, int32_t value2)
{
    return (uint64_t)advance << 56 | (uint64_t)(uint8_t)value2 << 48 |
           (uint64_t)(uint16_t)value1 << 32 | (uint64_t)rest << 24 | (uint64_t)(64 - bits) << 16 |
           position << 8 | bits;
}

static const uint64_t rare = (uint64_t)HUFFMAN_RARE << 56;

/* Checks the code as libjpeg does: no length may overflow or use all ones. */
static bool build_book(struct huffman_book *book, struct huffman_singles *singles,
                       const struct markers_table *table, uint32_t symbol_most)
{
    uint32_t code = 0, index = 0;

    *singles = (struct huffman_singles){{0}};
    memcpy(book->symbols, table->symbols, sizeof book->symbols);
    for (uint32_t bits = 1; bits <= 16; bits++, code <<= 1) {
        book->first[bits] = (int32_t)index - (int32_t)code;
        for (uint32_t i = 0; i < table->counts[bits - 1]; i++, index++, code++) {
            const uint32_t symbol = table->symbols[index];
            if ((symbol & 15) > symbol_most || (symbol_most == DC_BITS_MAX && symbol > 15))
                return false;
            if (bits > HUFFMAN_BITS)
                continue;
            const uint32_t spare = HUFFMAN_BITS - bits;
            for (uint32_t j = 0; j < 1U << spare && code < 1U << bits; j++)
                singles->at[code << spare | j] = (uint16_t)(bits << 8 | symbol);
        }
        if (table->counts[bits - 1] && code >= 1U << bits)
            return false;
        book->end[bits] = code << (16 - bits);
    }
    return true;
}

static bool find(const struct huffman_singles *singles, uint32_t index, uint32_t left,
                 struct huffman_symbol *symbol)
{
    const uint32_t single = singles->at[index];

    *symbol = (struct huffman_symbol){
        .code_bits = single >> 8, .run = single >> 4 & 15, .size = single & 15};
    symbol->ends = symbol->size == 0 && symbol->run != 15;
    return single && symbol->code_bits <= left;
}

static uint32_t after(uint32_t index, uint32_t bits)
{
    return index << bits & (ENTRIES - 1);
}

/* The value of the `size` bits at the start of the index. */
static int32_t value_of(uint32_t index, uint32_t size)
{
    const int32_t magnitude = (int32_t)(index >> (HUFFMAN_BITS - size));

    if (size == 0)
        return 0;
    return magnitude >> (size - 1) ? magnitude : magnitude - ((1 << size) - 1);
}

/* One symbol: its value needs `rest` bits after the index, but its sign lies within. */
static uint64_t single_entry(const struct huffman_symbol *symbol, uint32_t index)
{
    const uint32_t used = symbol->code_bits + symbol->size;

    if (used <= HUFFMAN_BITS)
        return pack(used, 0, symbol->run, symbol->run + 1,
                    value_of(after(index, symbol->code_bits), symbol->size), 0);
    const uint32_t inside = HUFFMAN_BITS - symbol->code_bits, rest = used - HUFFMAN_BITS;
    if (inside == 0 || used > HUFFMAN_MOST)
        return rare;
    const int32_t high = (int32_t)(index & ((1U << inside) - 1));
    const int32_t offset = high >> (inside - 1) ? 0 : (1 << symbol->size) - 1;
    return pack(used, rest, symbol->run, symbol->run + 1, high * (1 << rest) - offset, 0);
}

/* first: of the block's DC table (then it has no run), or another AC symbol. */
static uint64_t pair_entry(const struct huffman_singles *ac, const struct huffman_symbol *first,
                           uint32_t index)
{
    const uint64_t single = single_entry(first, index);
    const uint32_t used = first->code_bits + first->size;
    const int32_t value1 = value_of(after(index, first->code_bits), first->size);
    struct huffman_symbol second;

    if (used >= HUFFMAN_BITS)
        return single;
    const uint32_t next = after(index, used), left = HUFFMAN_BITS - used;
    if (!find(ac, next, left, &second))
        return single;
    if (second.ends)
        return pack(used + second.code_bits, 0, first->run, first->run + 1, value1, 0) | BLOCK_ENDS;
    if (second.code_bits + second.size > left || second.size > VALUE_2_BITS)
        return single;
    return pack(used + second.code_bits + second.size, 0, first->run,
                first->run + 1 + second.run + 1, value1,
                value_of(after(next, second.code_bits), second.size));
}

static void build_pairs(struct huffman *huffman, const struct huffman_singles *dc,
                        const struct huffman_singles *ac)
{
    struct huffman_symbol symbol;

    for (uint32_t i = 0; i < ENTRIES; i++) {
        huffman->dc.entries[i] = huffman->ac.entries[i] = rare;
        if (find(dc, i, HUFFMAN_BITS, &symbol))
            huffman->dc.entries[i] = pair_entry(ac, &symbol, i);
        if (!find(ac, i, HUFFMAN_BITS, &symbol))
            continue;
        /* Ending a block writes zeros to a position that holds zero. */
        huffman->ac.entries[i] = symbol.ends ? pack(symbol.code_bits, 0, 0, 1, 0, 0) | BLOCK_ENDS
                                             : pair_entry(ac, &symbol, i);
    }
}

/* Add AC symbols to an entry that consumed `used` bits, as long as their codes fit. */
static uint64_t skip_more(const struct huffman_singles *ac, uint32_t index, uint32_t used,
                          uint32_t advance, int32_t value1)
{
    struct huffman_symbol symbol;

    while (used < HUFFMAN_BITS && find(ac, after(index, used), HUFFMAN_BITS - used, &symbol)) {
        if (symbol.ends)
            return pack(used + symbol.code_bits, 0, 0, advance ? advance : 1, value1, 0) |
                   BLOCK_ENDS;
        if (advance + symbol.run + 1 > ADVANCE_MAX)
            break;
        used += symbol.code_bits + symbol.size;
        advance += symbol.run + 1;
    }
    return advance ? pack(used, 0, 0, advance, value1, 0) : rare;
}

void huffman_want_skip(struct huffman *huffman)
{
    struct huffman_singles dc, ac;
    struct huffman_symbol symbol;

    if (huffman->has_skip)
        return;
    build_book(&huffman->dc_book, &dc, &huffman->dc_source, DC_BITS_MAX);
    build_book(&huffman->ac_book, &ac, &huffman->ac_source, AC_BITS_MAX);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        huffman->skip_ac.entries[i] = skip_more(&ac, i, 0, 0, 0);
        huffman->skip_dc.entries[i] = huffman->dc.entries[i];
        if (find(&dc, i, HUFFMAN_BITS, &symbol) && symbol.code_bits + symbol.size <= HUFFMAN_BITS)
            huffman->skip_dc.entries[i] =
                skip_more(&ac, i, symbol.code_bits + symbol.size, 1,
                          value_of(after(i, symbol.code_bits), symbol.size));
    }
    huffman->skip_dc.book = &huffman->dc_book;
    huffman->skip_ac.book = &huffman->ac_book;
    huffman->has_skip = true;
}

static bool build(struct huffman *huffman, const struct markers_table *dc,
                  const struct markers_table *ac)
{
    struct huffman_singles dc_singles, ac_singles;

    huffman->has_skip = false;
    huffman->dc_source = *dc;
    huffman->ac_source = *ac;
    huffman->dc.book = &huffman->dc_book;
    huffman->ac.book = &huffman->ac_book;
    if (!build_book(&huffman->dc_book, &dc_singles, dc, DC_BITS_MAX) ||
        !build_book(&huffman->ac_book, &ac_singles, ac, AC_BITS_MAX))
        return false;
    build_pairs(huffman, &dc_singles, &ac_singles);
    return true;
}

static bool same(const struct markers_table *a, const struct markers_table *b)
{
    return memcmp(a->counts, b->counts, sizeof a->counts) == 0 &&
           memcmp(a->symbols, b->symbols, sizeof a->symbols) == 0;
}

void huffman_start(struct huffman_cache *cache)
{
    for (uint32_t i = 0; i < ENTRIES; i++)
        cache->stop.entries[i] = rare;
}

struct huffman *huffman_find(struct huffman_cache *cache, const struct markers_table *dc,
                             const struct markers_table *ac)
{
    struct huffman *oldest = &cache->slots[0];

    cache->use++;
    for (int i = 0; i < HUFFMAN_CACHE; i++) {
        struct huffman *slot = &cache->slots[i];
        if (slot->last_use && same(&slot->dc_source, dc) && same(&slot->ac_source, ac)) {
            slot->last_use = cache->use;
            return slot;
        }
        if (slot->last_use < oldest->last_use)
            oldest = slot;
    }
    oldest->last_use = 0;
    if (!build(oldest, dc, ac))
        return NULL;
    oldest->last_use = cache->use;
    return oldest;
}
