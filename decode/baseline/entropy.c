/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/entropy.h"

#include <string.h>

const uint8_t *baseline_entropy_unstuff(const uint8_t *from, const uint8_t *end, uint8_t *to,
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

void baseline_entropy_begin(struct entropy_stream *stream, const uint8_t *start, const uint8_t *end)
{
    *stream = (struct entropy_stream){.start = start, .next = start, .end = end};
}

void baseline_entropy_skip_bits(struct entropy_stream *stream, uint32_t bits)
{
    if (bits == 0)
        return;
    stream->bits = (uint64_t)*stream->next++ << (56 + bits);
    stream->count = 8 - bits;
}

uint64_t baseline_entropy_position(const struct entropy_stream *stream)
{
    return (uint64_t)(stream->next - stream->start) * 8 - stream->count;
}

bool baseline_entropy_is_complete(const struct entropy_stream *stream)
{
    return (uint64_t)(stream->end - stream->start) * 8 - baseline_entropy_position(stream) < 8;
}
