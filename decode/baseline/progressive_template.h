/* SPDX-License-Identifier: Apache-2.0
 *
 * AC coefficients of a scan of a progressive image (ITU-T T.81, G.1.2.2 and G.1.2.3), for blocks of
 * a row. Compiled by kernels_LEVEL.c, which defines
 *     BASELINE_DEPOSIT(bits, mask)  the lowest bits, in order, at the places that the mask has; by
 *                                   default in plain C
 *     PROGRESSIVE_ENLARGE(block, mask, negative, unit)  see below; likewise
 *
 * Where the zeros are, and which coefficients get a bit, are masks of a block: a branch for each
 * would be mispredicted half of the time.
 */
#include "decode/baseline/bits.h"

#include <string.h>

#ifndef BASELINE_DEPOSIT
#define BASELINE_DEPOSIT(bits, mask) BASELINE_NAME(deposit)(bits, mask)

BASELINE_TARGET static inline uint64_t BASELINE_NAME(deposit)(uint64_t bits, uint64_t mask)
{
    uint64_t deposited = 0;

    for (; mask && bits; mask &= mask - 1, bits >>= 1)
        deposited |= mask & (0 - mask) & (0 - (bits & 1));
    return deposited;
}
#endif

/* Return the blocks that end with this one: 2^run and some. */
BASELINE_TARGET static inline uint32_t BASELINE_NAME(take_run)(struct bits *bits, uint32_t run)
{
    const uint32_t more = (uint32_t)(bits->bits >> 1 >> (63 - run));

    bits_drop(bits, run);
    return (1U << run) + more;
}

/* ---- the first bits ---- */

BASELINE_TARGET static inline bool BASELINE_NAME(first)(struct bits *bits,
                                                        const struct progressive_ac *ac,
                                                        size_t index, uint32_t *ended)
{
    uint64_t mask = ac->stored->nonzero[index];
    int16_t *block = ac->stored->ac[index];

    if (mask == 0)
        memset(block, 0, sizeof ac->stored->ac[index]);
    for (uint32_t k = ac->first; k <= ac->last;) {
        bits_refill(bits);
        const uint32_t code = bits_find_code(bits, ac->codes), length = code >> 8;
        const uint32_t run = code >> 4 & 15, size = code & 15;
        if (size) {
            k += run;
            if (k > ac->last || size + ac->low > 15)
                return false;
            block[k] = (int16_t)(huffman_value(bits->bits, length, size) * (1 << ac->low));
            mask |= UINT64_C(1) << k++;
            bits_drop(bits, length + size);
        } else if (run == 15) {
            k += 16;
            if (k > ac->last + 1U)
                return false;
            bits_drop(bits, length);
        } else {
            if (code == 0)
                return false;
            bits_drop(bits, length);
            *ended = BASELINE_NAME(take_run)(bits, run);
            break;
        }
    }
    ac->stored->nonzero[index] = mask;
    return true;
}

BASELINE_TARGET static bool BASELINE_NAME(first_ac)(const struct progressive_ac *ac, size_t index,
                                                    size_t end)
{
    struct bits bits = bits_begin(ac->stream);
    uint32_t ended = *ac->ended;

    while (index < end) {
        if (ended) {
            const size_t stop = end - index < ended ? end : index + ended;
            ended -= (uint32_t)(stop - index);
            index = stop;
            continue;
        }
        if (bits_are_used_up(&bits) || !BASELINE_NAME(first)(&bits, ac, index++, &ended))
            return false;
        ended -= ended > 0;
    }
    *ac->ended = ended;
    return bits_end(&bits, ac->stream);
}

/* ---- one more bit ---- */

BASELINE_TARGET static inline uint64_t BASELINE_NAME(reverse)(uint64_t bits)
{
    bits = __builtin_bswap64(bits);
    bits = (bits >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) | (bits & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
    bits = (bits >> 2 & UINT64_C(0x3333333333333333)) | (bits & UINT64_C(0x3333333333333333)) << 2;
    return (bits >> 1 & UINT64_C(0x5555555555555555)) | (bits & UINT64_C(0x5555555555555555)) << 1;
}

/* A bit for each coefficient of the mask. Returns those that are set. */
BASELINE_TARGET static inline uint64_t BASELINE_NAME(take_bits)(struct bits *bits, uint64_t mask)
{
    enum { MOST = 32 }; /* are valid */
    uint64_t set = 0;

    const uint32_t count = (uint32_t)__builtin_popcountll(mask);
    if (__builtin_expect(count <= MOST, 1)) {
        set = BASELINE_DEPOSIT(BASELINE_NAME(reverse)(bits->bits), mask);
        bits_drop(bits, count);
        return set;
    }
    for (; mask; mask &= mask - 1)
        set |= bits_take_one(bits) ? mask & (0 - mask) : 0;
    return set;
}

#ifndef PROGRESSIVE_ENLARGE
#define PROGRESSIVE_ENLARGE(block, mask, negative, unit) \
    BASELINE_NAME(enlarge)(block, mask, negative, unit)

/* One unit away from zero, for the coefficients of a mask; from zero to a negative one for those of
 * another. All 64 as vectors: which ones is as good as random. */
BASELINE_TARGET static inline void BASELINE_NAME(enlarge)(int16_t *block, uint64_t mask,
                                                          uint64_t negative, int32_t unit)
{
    static const uint16_t places[16] = {1,       1 << 1,  1 << 2,  1 << 3, 1 << 4,  1 << 5,
                                        1 << 6,  1 << 7,  1 << 8,  1 << 9, 1 << 10, 1 << 11,
                                        1 << 12, 1 << 13, 1 << 14, 1 << 15};

    for (int part = 0; part < 64; part += 16) {
        const uint16_t wanted = (uint16_t)(mask >> part), below = (uint16_t)(negative >> part);
        int16_t *at = block + part;
        for (int i = 0; i < 16; i++) {
            const int16_t sign =
                (int16_t)(at[i] >> 15 | ((below & places[i]) == places[i] ? -1 : 0));
            const int16_t more = (int16_t)((wanted & places[i]) == places[i] ? unit : 0);
            at[i] = (int16_t)(at[i] + ((more ^ sign) - sign));
        }
    }
}
#endif

BASELINE_TARGET static inline bool BASELINE_NAME(refine)(struct bits *bits,
                                                         const struct progressive_ac *ac,
                                                         size_t index, uint32_t *ended)
{
    const uint64_t mask = ac->stored->nonzero[index];
    const int32_t unit = 1 << ac->low;
    uint64_t open = progressive_band(ac), set = 0, added = 0, negative = 0;
    int16_t *block = ac->stored->ac[index];

    while (open) { /* positions still to come */
        bits_refill(bits);
        const uint32_t code = bits_find_code(bits, ac->codes), size = code & 15;
        if (code == 0 || size > 1)
            return false;
        bits_drop(bits, code >> 8);
        if (size == 0 && (code & 0xf0) < 0xf0) {
            *ended = BASELINE_NAME(take_run)(bits, code >> 4 & 15);
            bits_refill(bits);
            set |= BASELINE_NAME(take_bits)(bits, mask & open);
            break;
        }
        const uint64_t minus = size & ~(bits->bits >> 63);
        bits_drop(bits, size);
        /* Past `run` coefficients that are zero to the next; all others get their bit. */
        const uint64_t next = BASELINE_DEPOSIT(UINT64_C(1) << (code >> 4 & 15), open & ~mask);
        if (size && next == 0)
            return false;
        set |= BASELINE_NAME(take_bits)(bits, mask & open & (next - 1));
        added |= next & (0 - (uint64_t)size);
        negative |= next & (0 - minus);
        open &= ~((next << 1) - 1);
    }
    if (mask == 0 && added)
        memset(block, 0, sizeof ac->stored->ac[index]);
    if (set | added)
        PROGRESSIVE_ENLARGE(block, set | added, negative, unit);
    ac->stored->nonzero[index] = mask | added;
    return true;
}

BASELINE_TARGET static bool BASELINE_NAME(refine_ac)(const struct progressive_ac *ac, size_t index,
                                                     size_t end)
{
    const uint64_t band = progressive_band(ac);
    struct bits bits = bits_begin(ac->stream);
    uint32_t ended = *ac->ended;

    for (; index < end; index++) {
        if (ended) {
            const uint64_t mask = ac->stored->nonzero[index] & band;
            if (mask) {
                bits_refill(&bits);
                const uint64_t set = BASELINE_NAME(take_bits)(&bits, mask);
                PROGRESSIVE_ENLARGE(ac->stored->ac[index], set, 0, 1 << ac->low);
            }
        } else if (bits_are_used_up(&bits) || !BASELINE_NAME(refine)(&bits, ac, index, &ended)) {
            return false;
        }
        ended -= ended > 0;
    }
    *ac->ended = ended;
    return bits_end(&bits, ac->stream);
}
