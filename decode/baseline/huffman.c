/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/entropy.h"

#include <stddef.h>
#include <string.h>

enum { DC_BITS_MAX = 11, AC_BITS_MAX = 10 }; /* magnitudes of 8-bit samples */
enum { STOP_BITS = 2 };
enum { INDEX_END = 1 << HUFFMAN_BITS_MAX };
enum { VALUE_2_BITS = 7, ADVANCE_MAX = 63 };

/* One decoded code. */
struct huffman_symbol {
    uint32_t code_bits, run, size;
    bool ends; /* of the block */
};

static struct huffman_entry pack(uint32_t bits, uint32_t rest, uint32_t position, uint32_t advance,
                                 int32_t value1, int32_t value2)
{
    return (struct huffman_entry){.bits = (uint8_t)bits,
                                  .position = (uint8_t)position,
                                  .rest = (uint16_t)(rest << 8 | (64 - (bits & 63))),
                                  .value1 = (uint16_t)value1,
                                  .value2 = (int8_t)value2,
                                  .advance = (uint8_t)advance};
}

static const struct huffman_entry rare = {.advance = HUFFMAN_RARE};

/* Checks the code as libjpeg does: no length may overflow or use all ones. */
static bool build_book(struct huffman_book *book, struct huffman_singles *singles,
                       const struct markers_table *table, uint32_t symbol_most)
{
    uint32_t code = 0, index = 0;

    *singles = (struct huffman_singles){{0}};
    memcpy(book->symbols, table->symbols, sizeof book->symbols);
    for (uint32_t bits = 1; bits <= HUFFMAN_LENGTHS; bits++, code <<= 1) {
        book->first[bits - 1] = (int32_t)index - (int32_t)code;
        for (uint32_t i = 0; i < table->counts[bits - 1]; i++, index++, code++) {
            const uint32_t symbol = table->symbols[index];
            if ((symbol & 15) > symbol_most || (symbol_most == DC_BITS_MAX && symbol > 15))
                return false;
            if (bits > HUFFMAN_BITS_MAX)
                continue;
            const uint32_t spare = HUFFMAN_BITS_MAX - bits;
            for (uint32_t j = 0; j < 1U << spare && code < 1U << bits; j++)
                singles->at[code << spare | j] = (huffman_single)(bits << 8 | symbol);
        }
        if (table->counts[bits - 1] && code >= 1U << bits)
            return false;
        book->end[bits - 1] = (uint16_t)(code << (16 - bits)); /* never all ones */
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

/* ---- entries: of the index, `known` bits from the top are known ---- */

static uint32_t after(uint32_t index, uint32_t bits)
{
    return index << bits & (INDEX_END - 1);
}

/* The value of the `size` bits at the start of the index. */
static int32_t value_at(uint32_t index, uint32_t size)
{
    const int32_t magnitude = (int32_t)(index >> (HUFFMAN_BITS_MAX - size));

    if (size == 0)
        return 0;
    return magnitude >> (size - 1) ? magnitude : magnitude - ((1 << size) - 1);
}

/* Make an entry of one symbol: its value needs `rest` bits after the index, but its sign lies
 * within. */
static struct huffman_entry single_entry(const struct huffman_symbol *symbol, uint32_t index,
                                         uint32_t known)
{
    const uint32_t used = symbol->code_bits + symbol->size;
    const uint32_t value = after(index, symbol->code_bits);

    if (used <= known)
        return pack(used, 0, symbol->run, symbol->run + 1, value_at(value, symbol->size), 0);
    const uint32_t inside = known - symbol->code_bits, rest = used - known;
    if (inside == 0 || used > HUFFMAN_USED_MAX)
        return rare;
    const int32_t high = (int32_t)(value >> (HUFFMAN_BITS_MAX - inside));
    const int32_t offset = high >> (inside - 1) ? 0 : (1 << symbol->size) - 1;
    return pack(used, rest, symbol->run, symbol->run + 1, high * (1 << rest) - offset, 0);
}

/* Make an entry of one or two symbols, and the block's end if it follows. first: of the block's DC
 * table (then it has no run), or another AC symbol. */
static struct huffman_entry pair_entry(const struct huffman_singles *ac,
                                       const struct huffman_symbol *first, uint32_t index,
                                       uint32_t known)
{
    const struct huffman_entry single = single_entry(first, index, known);
    const uint32_t used = first->code_bits + first->size;
    struct huffman_symbol second;

    if (used >= known)
        return single;
    const uint32_t next = after(index, used), left = known - used;
    const int32_t value1 = value_at(after(index, first->code_bits), first->size);
    if (!find(ac, next, left, &second))
        return single;
    if (second.ends)
        return pack((used + second.code_bits) | HUFFMAN_BLOCK_ENDS, 0, first->run, first->run + 1,
                    value1, 0);
    if (second.code_bits + second.size > left || second.size > VALUE_2_BITS)
        return single;
    const uint32_t both = used + second.code_bits + second.size;
    struct huffman_symbol third;
    const bool ends = find(ac, after(index, both), known - both, &third) && third.ends;
    return pack(ends ? (both + third.code_bits) | HUFFMAN_BLOCK_ENDS : both, 0, first->run,
                first->run + 1 + second.run + 1, value1,
                value_at(after(next, second.code_bits), second.size));
}

/* Add AC symbols to an entry that consumed `used` bits, as long as their codes fit. */
static struct huffman_entry flat_more(const struct huffman_singles *ac, uint32_t index,
                                      uint32_t known, uint32_t used, uint32_t advance,
                                      int32_t value1)
{
    struct huffman_symbol symbol;

    while (used < known && find(ac, after(index, used), known - used, &symbol)) {
        if (symbol.ends)
            return pack((used + symbol.code_bits) | HUFFMAN_BLOCK_ENDS, 0, 0, advance ? advance : 1,
                        value1, 0);
        const uint32_t more = used + symbol.code_bits + symbol.size;
        if (advance + symbol.run + 1 > ADVANCE_MAX || more > HUFFMAN_USED_MAX)
            break;
        used = more;
        advance += symbol.run + 1;
    }
    return advance ? pack(used, 0, 0, advance, value1, 0) : rare;
}

static struct huffman_entry flat_dc_entry(const struct huffman_singles *dc,
                                          const struct huffman_singles *ac, uint32_t index,
                                          uint32_t known)
{
    struct huffman_symbol symbol;

    if (!find(dc, index, known, &symbol))
        return rare;
    const uint32_t used = symbol.code_bits + symbol.size;
    if (used > known)
        return single_entry(&symbol, index, known);
    return flat_more(ac, index, known, used, 1,
                     value_at(after(index, symbol.code_bits), symbol.size));
}

/* ---- tables ---- */

static void set_entry(struct huffman_table *table, uint32_t bits, uint32_t i,
                      struct huffman_entry entry)
{
    const size_t first = 64 - bits + HUFFMAN_AC_BITS - offsetof(struct huffman_table, entries);

    memcpy(table->entries + first + i * sizeof entry, &entry, sizeof entry);
}

static huffman_reference finish_table(struct huffman_table *table, const struct huffman_book *book,
                                      uint32_t bits)
{
    table->book = book;
    return (const uint8_t *)table + 64 - bits;
}

static void build_singles(struct huffman *huffman, struct huffman_singles *dc,
                          struct huffman_singles *ac)
{
    build_book(&huffman->dc_book, dc, &huffman->dc_source, DC_BITS_MAX);
    build_book(&huffman->ac_book, ac, &huffman->ac_source, AC_BITS_MAX);
}

void baseline_huffman_want_flat(struct huffman *huffman)
{
    const uint32_t dc_bits = HUFFMAN_DC_BITS, ac_bits = HUFFMAN_AC_BITS;
    struct huffman_singles dc, ac;

    if (huffman->has_flat)
        return;
    build_singles(huffman, &dc, &ac);
    for (uint32_t i = 0; i < 1U << dc_bits; i++)
        set_entry(&huffman->flat_dc_table, dc_bits, i,
                  flat_dc_entry(&dc, &ac, i << (HUFFMAN_BITS_MAX - dc_bits), dc_bits));
    for (uint32_t i = 0; i < 1U << ac_bits; i++)
        set_entry(&huffman->flat_ac_table, ac_bits, i,
                  flat_more(&ac, i << (HUFFMAN_BITS_MAX - ac_bits), ac_bits, 0, 0, 0));
    huffman->flat_dc = finish_table(&huffman->flat_dc_table, &huffman->dc_book, dc_bits);
    huffman->flat_ac = finish_table(&huffman->flat_ac_table, &huffman->ac_book, ac_bits);
    huffman->has_flat = true;
}

static uint16_t skip_entry(struct huffman_entry flat)
{
    return (uint16_t)(flat.bits | flat.advance << 8);
}

void baseline_huffman_want_skip(struct huffman *huffman)
{
    const uint32_t bits = HUFFMAN_SKIP_BITS, spare = HUFFMAN_BITS_MAX - bits;
    struct huffman_singles dc, ac;

    if (huffman->has_skip)
        return;
    build_singles(huffman, &dc, &ac);
    for (uint32_t i = 0; i < 1U << bits; i++) {
        huffman->skip_dc.entries[i] = skip_entry(flat_dc_entry(&dc, &ac, i << spare, bits));
        huffman->skip_ac.entries[i] = skip_entry(flat_more(&ac, i << spare, bits, 0, 0, 0));
    }
    for (uint32_t i = 0; i < 1U << HUFFMAN_DC_BITS; i++) {
        const huffman_single single = dc.at[i << (HUFFMAN_BITS_MAX - HUFFMAN_DC_BITS)];
        huffman->dc_singles[i] = single >> 8 > HUFFMAN_DC_BITS ? 0 : single;
    }
    huffman->skip_dc.book = &huffman->dc_book;
    huffman->skip_ac.book = &huffman->ac_book;
    huffman->has_skip = true;
}

static bool same_codes(const struct markers_table *a, const struct markers_table *b)
{
    return memcmp(a->counts, b->counts, sizeof a->counts) == 0 &&
           memcmp(a->symbols, b->symbols, sizeof a->symbols) == 0;
}

void baseline_huffman_start(struct huffman_cache *cache)
{
    for (uint32_t i = 0; i < 1U << STOP_BITS; i++)
        set_entry(&cache->stop_table, STOP_BITS, i, rare);
    cache->stop = finish_table(&cache->stop_table, NULL, STOP_BITS);
    for (uint32_t i = 0; i < 1U << HUFFMAN_SKIP_BITS; i++)
        cache->skip_stop.entries[i] = skip_entry(rare);
}

struct huffman *baseline_huffman_find(struct huffman_cache *cache, const struct markers_table *dc,
                                      const struct markers_table *ac)
{
    struct huffman *oldest = &cache->slots[0];
    const uint32_t dc_bits = HUFFMAN_DC_BITS, ac_bits = HUFFMAN_AC_BITS;
    struct huffman_singles dc_singles, ac_singles;
    struct huffman_symbol symbol;

    cache->use++;
    for (int i = 0; i < HUFFMAN_CACHE; i++) {
        struct huffman *slot = &cache->slots[i];
        if (slot->last_use && same_codes(&slot->dc_source, dc) &&
            same_codes(&slot->ac_source, ac)) {
            slot->last_use = cache->use;
            return slot;
        }
        if (slot->last_use < oldest->last_use)
            oldest = slot;
    }
    oldest->last_use = 0;
    oldest->has_flat = oldest->has_skip = false;
    oldest->dc_source = *dc;
    oldest->ac_source = *ac;
    if (!build_book(&oldest->dc_book, &dc_singles, dc, DC_BITS_MAX) ||
        !build_book(&oldest->ac_book, &ac_singles, ac, AC_BITS_MAX))
        return NULL;
    for (uint32_t i = 0; i < 1U << dc_bits; i++) {
        const uint32_t index = i << (HUFFMAN_BITS_MAX - dc_bits);
        set_entry(&oldest->dc_table, dc_bits, i,
                  find(&dc_singles, index, dc_bits, &symbol)
                      ? pair_entry(&ac_singles, &symbol, index, dc_bits)
                      : rare);
    }
    for (uint32_t i = 0; i < 1U << ac_bits; i++) {
        const uint32_t index = i << (HUFFMAN_BITS_MAX - ac_bits);
        struct huffman_entry entry = rare;
        if (find(&ac_singles, index, ac_bits, &symbol)) /* ending writes zeros where zero is */
            entry = symbol.ends ? pack(symbol.code_bits | HUFFMAN_BLOCK_ENDS, 0, 0, 1, 0, 0)
                                : pair_entry(&ac_singles, &symbol, index, ac_bits);
        set_entry(&oldest->ac_table, ac_bits, i, entry);
    }
    oldest->dc = finish_table(&oldest->dc_table, &oldest->dc_book, dc_bits);
    oldest->ac = finish_table(&oldest->ac_table, &oldest->ac_book, ac_bits);
    oldest->last_use = cache->use;
    return oldest;
}

bool baseline_huffman_list(struct huffman_codes *codes, const struct markers_table *table,
                           bool is_dc)
{
    return build_book(&codes->book, &codes->singles, table, is_dc ? DC_BITS_MAX : AC_BITS_MAX);
}
