/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of the entropy decoder, compiled once per CPU by kernels_LEVEL.c, which defines
 *     BASELINE_NAME(), BASELINE_TARGET
 *     BASELINE_EXTRACT(value, where)  value >> (where & 0xff), of which (where >> 8 & 0xff) low
 * bits BASELINE_AT_END(entry, a, x, b, y, c, z) if the entry ends a block: a = x, b = y, c = z, not
 * branching
 */
#include "decode/baseline/entropy.h"

#include <string.h>

static inline uint64_t BASELINE_NAME(big_endian)(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

BASELINE_TARGET static inline uint64_t BASELINE_NAME(entry)(huffman_reference table, uint64_t bits)
{
    const uint64_t index = bits >> ((uintptr_t)table & 63);
    uint64_t entry;

    memcpy(&entry, table + HUFFMAN_AC_BITS + sizeof entry * index, sizeof entry);
    return entry;
}

/* At least 56 bits are valid then. */
#define BASELINE_REFILL()                                       \
    do {                                                        \
        bits |= BASELINE_NAME(big_endian)(next) >> (left & 63); \
        next += (~left & 56) >> 3;                              \
        left |= 56;                                             \
    } while (0)

/* Value 2 is stored first, since without one it has the position of value 1. */
#define BASELINE_STORE(entry, ahead)                                             \
    do {                                                                         \
        const uint64_t rest = BASELINE_EXTRACT(bits, (uint32_t)((entry) >> 16)); \
        if (keeps)                                                               \
            (ahead)[-1] = (int8_t)(uint8_t)((entry) >> 48);                      \
        out[keeps ? (uint32_t)(entry) >> 8 & 0xff : 0] =                         \
            (int16_t)(uint16_t)(((entry) >> 32) + rest);                         \
    } while (0)

/* One look-up at `out`. The table of the next one depends on the entry alone, and what to choose
 * from was loaded before, to keep the critical path short. The counts of bits have garbage above
 * their lowest six. */
#define BASELINE_LOOK_UP()                                                                     \
    {                                                                                          \
        const uint64_t entry = BASELINE_NAME(entry)(table, bits);                              \
        huffman_reference following = block->ac;                                               \
        int16_t *ahead = out + (entry >> 56);                                                  \
        if (__builtin_expect(((uintptr_t)out ^ (uintptr_t)ahead) >= ENTROPY_ALIGNMENT, 0))     \
            goto rare;                                                                         \
        int16_t *const over = (int16_t *)(((uintptr_t)out | (ENTROPY_ALIGNMENT - 1)) + 1);     \
        BASELINE_STORE(entry, ahead);                                                          \
        const struct entropy_block *next_block = block;                                        \
        BASELINE_AT_END(entry, following, block->next_dc, ahead, over, next_block, block + 1); \
        table = following;                                                                     \
        out = ahead;                                                                           \
        block = next_block;                                                                    \
        bits <<= entry & 63;                                                                   \
        left -= (uint32_t)entry;                                                               \
    }

/* Does the entry fill the block to its last coefficient? Then no code says that it ends. */
static inline bool BASELINE_NAME(fills)(const int16_t *out, uint64_t entry)
{
    return (entry & 0x80) == 0 && entry >> 56 < HUFFMAN_RARE &&
           ((uintptr_t)(out + (entry >> 56)) & (ENTROPY_ALIGNMENT - 1)) == 0;
}

/* Three look-ups use at most 3 x HUFFMAN_MOST of the 56 bits of a refill. */
BASELINE_TARGET static inline __attribute__((always_inline)) bool
BASELINE_NAME(decode)(struct entropy_stream *stream, const struct entropy_block *block,
                      int16_t *out, const int16_t *end, bool keeps)
{
    const uint8_t *next = stream->next, *const last = stream->end + 8;
    huffman_reference table = block[-1].next_dc;
    uint64_t bits = stream->bits;
    uint32_t left = stream->count;

    for (;;) {
        if (next > last)
            return false;
        BASELINE_REFILL();
        BASELINE_LOOK_UP();
        BASELINE_LOOK_UP();
        BASELINE_LOOK_UP();
        continue;
    rare:
        if (out == end)
            break;
        BASELINE_REFILL();
        const uint64_t entry = BASELINE_NAME(entry)(table, bits);
        struct entropy_symbol symbol = {entry & 63, (uint32_t)(entry >> 56)};
        if (BASELINE_NAME(fills)(out, entry)) {
            BASELINE_STORE(entry, out + symbol.advance);
        } else {
            symbol = entropy_by_the_book(table, bits, out);
            if (symbol.bits == 0)
                return false;
        }
        bits <<= symbol.bits;
        left -= symbol.bits;
        out += symbol.advance;
        table = block->ac;
        if (((uintptr_t)out & (ENTROPY_ALIGNMENT - 1)) == 0)
            table = block++->next_dc;
    }
    left &= 63;
    stream->next = next;
    stream->bits = bits;
    stream->count = left;
    return (size_t)(next - stream->start) * 8 - left <= (size_t)(stream->end - stream->start) * 8;
}

BASELINE_TARGET static bool BASELINE_NAME(run)(struct entropy_stream *stream,
                                               const struct entropy_block *blocks, int16_t *out,
                                               const int16_t *end)
{
    return BASELINE_NAME(decode)(stream, blocks, out, end, true);
}

BASELINE_TARGET static bool BASELINE_NAME(skip)(struct entropy_stream *stream,
                                                const struct entropy_block *blocks, int16_t *out,
                                                const int16_t *end)
{
    return BASELINE_NAME(decode)(stream, blocks, out, end, false);
}

#undef BASELINE_REFILL
#undef BASELINE_STORE
#undef BASELINE_LOOK_UP
