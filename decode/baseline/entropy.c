/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/entropy.h"

#include <string.h>

const uint8_t *entropy_unstuff(const uint8_t *from, const uint8_t *end, uint8_t *to,
                               uint8_t **to_end)
{
    while (from < end) {
        const uint8_t *marker = memchr(from, 0xff, (size_t)(end - from));
        const size_t count = (size_t)((marker ? marker : end) - from);
        memcpy(to, from, count);
        to += count;
        from += count;
        if (!marker || end - marker < 2 || marker[1] != 0)
            break;
        *to++ = 0xff;
        from += 2;
    }
    memset(to, 0, ENTROPY_PADDING);
    *to_end = to;
    return from;
}

void entropy_begin(struct entropy_stream *stream, const uint8_t *start, const uint8_t *end)
{
    *stream = (struct entropy_stream){.start = start, .next = start, .end = end};
}

bool entropy_is_complete(const struct entropy_stream *stream)
{
    const size_t left = (size_t)(stream->end - stream->start) * 8 + stream->count -
                        (size_t)(stream->next - stream->start) * 8;

    return left < 8;
}

struct entropy_symbol entropy_by_the_book(huffman_reference table, uint64_t bits, int16_t *out)
{
    const struct entropy_symbol invalid = {0, 0};
    const struct huffman_book *book = huffman_book_of(table);
    const uint32_t k = (uint32_t)((uintptr_t)out % ENTROPY_ALIGNMENT / sizeof *out);
    const uint32_t prefix = (uint32_t)(bits >> 48);
    uint32_t length = 1;

    for (int i = 1; i <= 16; i++) /* faster than a loop of an unpredictable length */
        length += prefix >= book->end[i];
    if (length > 16)
        return invalid;
    const uint8_t symbol = book->symbols[book->first[length] + (int32_t)(prefix >> (16 - length))];
    const uint32_t size = symbol & 15, run = k ? symbol >> 4 : 0;
    if (k && size == 0) { /* 16 zeros, or the end of the block */
        const uint32_t advance = run == 15 ? 16 : 64 - k;
        return k + advance > 64 ? invalid : (struct entropy_symbol){length, advance};
    }
    if (k + run > 63)
        return invalid;
    const int32_t magnitude = size ? (int32_t)(bits << length >> (64 - size)) : 0;
    out[run] =
        (int16_t)(size && magnitude >> (size - 1) ? magnitude : magnitude - ((1 << size) - 1));
    return (struct entropy_symbol){length + size, run + 1};
}
