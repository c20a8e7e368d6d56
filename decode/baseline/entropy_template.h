/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of the entropy decoder, compiled once per CPU by kernels_LEVEL.c, which defines
 *     BASELINE_NAME(), BASELINE_TARGET
 *     BASELINE_AT_END(entry, a, x, b, y, c, z)
 *         if the entry ends a block: a = x, b = y, c = z, not branching
 *     BASELINE_EXTRACT(value, where), or the default:
 *         value >> (where & 0xff), of which the (where >> 8 & 0xff) low bits
 *     BASELINE_DEPOSIT(bits, mask)  the lowest bits, in order, at the places that the mask has; by
 *                                   default in plain C
 *     PROGRESSIVE_ENLARGE(block, mask, negative, unit)  see below; likewise
 *     BASELINE_NOT_PROGRESSIVE      the level has none for scans of progressive images
 */
#include "decode/baseline/entropy.h"

BASELINE_TARGET static inline const struct huffman_entry *
BASELINE_NAME(entry)(huffman_reference table, uint64_t bits)
{
    const uint64_t index = bits >> ((uintptr_t)table & 63);

    return (const struct huffman_entry *)(const void *)(table + HUFFMAN_AC_BITS +
                                                        sizeof(struct huffman_entry) * index);
}

/* Return the first byte of an entry. Does not compute the entry's address, which takes longer. */
BASELINE_TARGET static inline uint8_t BASELINE_NAME(used)(huffman_reference table, uint64_t bits)
{
    size_t index = (size_t)(bits >> ((uintptr_t)table & 63));

    __asm__("" : "+r"(index)); /* keep gcc from deriving it from the entry's address */
    return table[HUFFMAN_AC_BITS + sizeof(struct huffman_entry) * index];
}

/* Refill: at least 56 bits are valid then. */
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

/* The end of a block's coefficients, which are in the order of the blocks. */
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

/* One look-up at position k. Each records the start of the next block; the last one, which ends
 * this block, records the right place. */
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

/* Like run(), but keeps no coefficients. */
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

/* ---- AC coefficients of a scan of a progressive image, for blocks of a row ----
 *
 * ITU-T T.81, G.1.2.2 and G.1.2.3. Where the zeros are, and which coefficients get a bit, are masks
 * of a block: a branch for each would be mispredicted half of the time. */

#ifndef BASELINE_NOT_PROGRESSIVE
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

/* Return the length of a run of blocks that end here, this one included: 2^run plus the next `run`
 * bits. */
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

/* Read a bit for each coefficient of the mask. Returns the mask of those that are set. */
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

/* Move the coefficients of `mask` one unit away from zero, and set those of `negative`, which are
 * zero, to minus one unit. All 64 are processed as vectors, since which ones change is as good as
 * random. */
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
        /* Skip `run` zero coefficients up to the next one; nonzero ones in between get one more bit
         * each. */
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
#endif
