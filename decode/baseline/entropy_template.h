/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of the entropy decoder, compiled once per CPU by kernels_LEVEL.c, which defines
 * BASELINE_NAME(), BASELINE_TARGET and BASELINE_LOW(value, count), the low bits of a value.
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

/* One look-up at index r: the table of the next one depends on the entry alone, and the pair of
 * tables to choose from is loaded with the old index, to keep the critical path short. Value 2 is
 * stored first, since without one it has the position of value 1. */
#define BASELINE_LOOK_UP()                                                                  \
    do {                                                                                    \
        const uint64_t entry = table->entries[bits >> (64 - HUFFMAN_BITS)];                 \
        const struct entropy_block *block = &blocks[r >> 6];                                \
        const struct huffman_table *const ac = block->ac, *const dc = block->next_dc;       \
        const uint32_t k = r & 63, advance = (uint32_t)entry >> 24, next_r = r + advance;   \
        int16_t *const own = coefficients + (r - k);                                        \
        if (__builtin_expect((r ^ next_r) > 63, 0)) {                                       \
            const uint32_t symbol = entropy_by_the_book(table, bits, k, own);               \
            if (!symbol)                                                                    \
                return false;                                                               \
            bits <<= symbol & 63;                                                           \
            left -= symbol & 63;                                                            \
            table = k + (symbol >> 8) > 63 ? dc : ac;                                       \
            r += symbol >> 8;                                                               \
        } else {                                                                            \
            const uint64_t rest =                                                           \
                BASELINE_LOW(bits >> (-(uint32_t)entry & 63), (uint32_t)entry >> 8 & 0xff); \
            own[markers_natural[k + advance - 1]] = (int16_t)(entry >> 32);                 \
            own[markers_natural[k + ((uint32_t)entry >> 16 & 0xff)]] =                      \
                (int16_t)((entry >> 48) + rest);                                            \
            bits <<= entry & 63;                                                            \
            left -= (uint32_t)entry & 63;                                                   \
            table = entry & 0x80 ? dc : ac;                                                 \
            r = entry & 0x80 ? (r | 63) + 1 : next_r;                                       \
        }                                                                                   \
    } while (0)

/* Two look-ups use at most 2 x 27 of the 56 bits of a refill. */
BASELINE_TARGET static bool BASELINE_NAME(run)(struct entropy_stream *stream,
                                               const struct entropy_block *blocks, uint32_t count,
                                               int16_t *coefficients)
{
    const uint8_t *next = stream->next, *const last = stream->end + 8;
    const struct huffman_table *table = blocks[-1].next_dc;
    const uint32_t end = count * 64;
    uint64_t bits = stream->bits;
    uint32_t left = stream->count, r = 0;

    while (r < end) {
        if (next > last)
            return false;
        bits |= BASELINE_NAME(big_endian)(next) >> left;
        next += (63 - left) >> 3;
        left |= 56;
        BASELINE_LOOK_UP();
        if (r >= end)
            break;
        BASELINE_LOOK_UP();
    }
    stream->next = next;
    stream->bits = bits;
    stream->count = left;
    return (size_t)(next - stream->start) * 8 - left <= (size_t)(stream->end - stream->start) * 8;
}

#undef BASELINE_LOOK_UP
