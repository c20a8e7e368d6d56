/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of the entropy decoder, compiled once per CPU by kernels_LEVEL.c, which defines
 *     BASELINE_NAME(), BASELINE_TARGET
 *     BASELINE_AT_END(entry, a, x, b, y, c, z)
 *         if the entry ends a block: a = x, b = y, c = z, not branching
 *     BASELINE_EXTRACT(value, where), or the default:
 *         value >> (where & 0xff), of which the (where >> 8 & 0xff) low bits
 */
#include "decode/baseline/entropy.h"

BASELINE_TARGET static inline const struct huffman_entry *
BASELINE_NAME(entry)(huffman_reference table, uint64_t bits)
{
    const uint64_t index = bits >> ((uintptr_t)table & 63);

    return (const struct huffman_entry *)(const void *)(table + HUFFMAN_AC_BITS +
                                                        sizeof(struct huffman_entry) * index);
}

/* Its first byte: without the address of the others, which takes longer to add up. */
BASELINE_TARGET static inline uint8_t BASELINE_NAME(used)(huffman_reference table, uint64_t bits)
{
    size_t index = (size_t)(bits >> ((uintptr_t)table & 63));

    __asm__("" : "+r"(index)); /* not as part of the entry */
    return table[HUFFMAN_AC_BITS + sizeof(struct huffman_entry) * index];
}

/* At least 56 bits are valid then. */
#define BASELINE_REFILL()                                \
    do {                                                 \
        bits |= entropy_big_endian(next) >> (left & 63); \
        next += (~left & 56) >> 3;                       \
        left |= 56;                                      \
    } while (0)

#ifndef BASELINE_EXTRACT
#define BASELINE_EXTRACT(value, where) \
    ((value) >> ((where)&63) & ((1ULL << ((where) >> 8 & 63)) - 1))
#endif

/* Value 2 is stored first, since without one it has the position of value 1. */
#define BASELINE_STORE(entry, ahead)                                        \
    do {                                                                    \
        const uint64_t rest = BASELINE_EXTRACT(bits, (entry)->rest);        \
        const int16_t value1 = (int16_t)(uint16_t)((entry)->value1 + rest); \
        (ahead)[-1] = (entry)->value2;                                      \
        out[(entry)->position] = value1;                                    \
    } while (0)

/* The end of a block's coefficients: those have the order of the blocks. */
#define BASELINE_END(block) \
    ((int16_t *)(bias + (uintptr_t)(block) * (ENTROPY_ALIGNMENT / sizeof *(block))))

/* One look-up at `out`. The table of the next one depends on the entry alone, and what to choose
 * from was loaded before, to keep the critical path short. The counts of bits have garbage above
 * their lowest six. */
#define BASELINE_LOOK_UP()                                                                    \
    {                                                                                         \
        huffman_reference following = block->ac;                                              \
        int16_t *over = BASELINE_END(block);                                                  \
        entry = BASELINE_NAME(entry)(table, bits);                                            \
        const uint32_t used = BASELINE_NAME(used)(table, bits);                               \
        ahead = out + entry->advance;                                                         \
        if (__builtin_expect(ahead >= over, 0))                                               \
            goto rare;                                                                        \
        BASELINE_STORE(entry, ahead);                                                         \
        const struct entropy_block *next_block = block;                                       \
        BASELINE_AT_END(used, following, block->next_dc, ahead, over, next_block, block + 1); \
        table = following;                                                                    \
        out = ahead;                                                                          \
        block = next_block;                                                                   \
        bits <<= used & 63;                                                                   \
        left -= used;                                                                         \
    }

/* Decode one symbol at position k of a block, by the book. */
BASELINE_TARGET static __attribute__((noinline)) struct entropy_symbol
BASELINE_NAME(by_the_book)(const struct huffman_book *book, uint64_t bits, uint32_t k, int16_t *out)
{
    const struct entropy_symbol invalid = {0, 0};
    const uint32_t prefix = (uint32_t)(bits >> 48), length = huffman_book_length(book, prefix);

    if (length > HUFFMAN_LENGTHS)
        return invalid;
    const uint8_t symbol = huffman_book_symbol(book, prefix, length);
    const uint32_t size = symbol & 15, run = k ? symbol >> 4 : 0;
    if (k && size == 0) { /* 16 zeros, or the end of the block */
        const uint32_t advance = run == 15 ? 16 : 64 - k;
        return k + advance > 64 ? invalid : (struct entropy_symbol){length, advance};
    }
    if (k + run > 63)
        return invalid;
    out[run] = (int16_t)huffman_value(bits, length, size);
    return (struct entropy_symbol){length + size, run + 1};
}

/* Three look-ups use at most 3 x HUFFMAN_USED_MAX of the 56 bits of a refill. */
BASELINE_TARGET static bool BASELINE_NAME(run)(struct entropy_stream *stream,
                                               const struct entropy_block *block, int16_t *out,
                                               const int16_t *end)
{
    const uint8_t *next = stream->next, *const last = stream->end + 8;
    huffman_reference table = block[-1].next_dc;
    const uintptr_t bias =
        (uintptr_t)out + ENTROPY_ALIGNMENT - (uintptr_t)block * (ENTROPY_ALIGNMENT / sizeof *block);
    const struct huffman_entry *entry;
    uint64_t bits = stream->bits;
    uint32_t left = stream->count;
    int16_t *ahead;

    for (;;) {
        if (next > last)
            return false;
        BASELINE_REFILL();
        BASELINE_LOOK_UP();
        BASELINE_LOOK_UP();
        BASELINE_LOOK_UP();
        continue;
    rare:
        /* Filled to its last coefficient? Then no code says that the block ends. */
        if (ahead == BASELINE_END(block) && entry->bits < HUFFMAN_BLOCK_ENDS &&
            entry->advance < HUFFMAN_RARE) {
            BASELINE_STORE(entry, ahead);
            bits <<= entry->bits & 63;
            left -= entry->bits;
            out = ahead;
            table = block++->next_dc;
            continue;
        }
        if (out == end)
            break;
        BASELINE_REFILL();
        const uint32_t k = (uint32_t)((uintptr_t)out % ENTROPY_ALIGNMENT / sizeof *out);
        const struct entropy_symbol symbol =
            BASELINE_NAME(by_the_book)(huffman_book_of(table), bits, k, out);
        if (symbol.bits == 0)
            return false;
        bits <<= symbol.bits;
        left -= symbol.bits;
        out += symbol.advance;
        table = block->ac;
        if (((uintptr_t)out & (ENTROPY_ALIGNMENT - 1)) == 0)
            table = block++->next_dc;
    }
    return entropy_stop(stream, next, bits, left);
}

#undef BASELINE_STORE
#undef BASELINE_LOOK_UP
#undef BASELINE_END

#define BASELINE_MARK(block)                                                   \
    do {                                                                       \
        struct entropy_mark *const mark = (void *)(bias + (uintptr_t)(block)); \
        mark->next = next;                                                     \
        mark->count = left;                                                    \
    } while (0)

/* One look-up at position k. Each marks the next block: the last one, which ends this block, does
 * so rightly. */
#define BASELINE_LOOK_UP()                                                                 \
    {                                                                                      \
        const struct huffman_skip *following = block->ac;                                  \
        const struct entropy_skip_block *next_block = block, *const after = block + 1;     \
        entry = table->entries[bits >> (64 - HUFFMAN_SKIP_BITS)];                          \
        ahead = k + (entry >> 8);                                                          \
        if (__builtin_expect(ahead > 63, 0))                                               \
            goto rare;                                                                     \
        BASELINE_AT_END(entry, following, block->next_dc, ahead, zero, next_block, after); \
        table = following;                                                                 \
        k = ahead;                                                                         \
        block = next_block;                                                                \
        bits <<= entry & 63;                                                               \
        left -= entry;                                                                     \
        BASELINE_MARK(after);                                                              \
    }

_Static_assert(sizeof(struct entropy_mark) == sizeof(struct entropy_skip_block),
               "one address is the other plus a bias");

/* As run(), but nothing is kept. */
BASELINE_TARGET static bool BASELINE_NAME(skip)(struct entropy_stream *stream,
                                                const struct entropy_skip_block *block,
                                                const struct entropy_skip_block *end,
                                                struct entropy_mark *marks)
{
    const uint8_t *next = stream->next, *const last = stream->end + 8;
    const struct huffman_skip *table = block[-1].next_dc;
    const uintptr_t bias = (uintptr_t)marks - (uintptr_t)block;
    const size_t zero = 0;
    uint64_t bits = stream->bits;
    size_t left = stream->count, k = 0, entry, ahead;
    int16_t values[64];

    BASELINE_MARK(block);
    for (;;) {
        if (next > last)
            return false;
        BASELINE_REFILL();
        BASELINE_LOOK_UP();
        BASELINE_LOOK_UP();
        BASELINE_LOOK_UP();
        continue;
    rare:
        if (block == end)
            break;
        if (ahead == 64 && !(entry & HUFFMAN_BLOCK_ENDS) && entry >> 8 < HUFFMAN_RARE) {
            k = 64; /* filled to its last coefficient */
            bits <<= entry & 63;
            left -= entry;
        } else {
            BASELINE_REFILL();
            const struct entropy_symbol symbol =
                BASELINE_NAME(by_the_book)(table->book, bits, (uint32_t)k, values + k);
            if (symbol.bits == 0)
                return false;
            k += symbol.advance;
            bits <<= symbol.bits;
            left -= symbol.bits;
        }
        table = block->ac;
        if (k == 64) {
            k = 0;
            table = block++->next_dc;
            BASELINE_MARK(block);
        }
    }
    return entropy_stop(stream, next, bits, (uint32_t)left);
}

BASELINE_TARGET static inline int32_t BASELINE_NAME(difference)(const uint8_t *start,
                                                                const struct entropy_mark *mark,
                                                                const struct huffman *huffman)
{
    const uint64_t position = (uint64_t)(mark->next - start) * 8 - (mark->count & 63);
    const uint64_t bits = entropy_big_endian(start + position / 8) << position % 8;
    const huffman_single single = huffman->dc_singles[bits >> (64 - HUFFMAN_DC_BITS)];

    if (single)
        return huffman_value(bits, single >> 8, single & 15);
    const uint32_t prefix = (uint32_t)(bits >> 48);
    const uint32_t length = huffman_book_length(&huffman->dc_book, prefix);
    return huffman_value(bits, length, huffman_book_symbol(&huffman->dc_book, prefix, length));
}

BASELINE_TARGET static uint32_t BASELINE_NAME(sum_dc)(const struct entropy_stream *stream,
                                                      const struct entropy_mark *marks,
                                                      size_t count, size_t stride,
                                                      const struct huffman *huffman)
{
    const uint8_t *const start = stream->start;
    uint32_t sum = 0;

    for (; count > 0; count--, marks += stride)
        sum += (uint32_t)BASELINE_NAME(difference)(start, marks, huffman);
    return sum;
}

#undef BASELINE_MARK
#undef BASELINE_LOOK_UP
#undef BASELINE_REFILL
