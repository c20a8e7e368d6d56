/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/pattern.h"

#include "base/fail.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Odd: words at different places differ. */
static const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t word_at(uint64_t seed, uint64_t offset)
{
    return seed + offset / sizeof(uint64_t) * step;
}

static uint64_t seed_of(const struct pattern *pattern)
{
    return random_hash(pattern->turn, pattern->rank, 1);
}

void pattern_fill(const struct pattern *pattern, unsigned char *data, uint64_t bytes)
{
    const uint64_t seed = seed_of(pattern);
    uint64_t at = 0;

    for (; at + sizeof seed <= bytes; at += sizeof seed)
        memcpy(data + at, &(uint64_t){word_at(seed, at)}, sizeof seed);
    memcpy(data + at, &(uint64_t){word_at(seed, at)}, bytes - at);
}

int pattern_check(const struct pattern *pattern, uint64_t offset, const unsigned char *data,
                  uint64_t bytes)
{
    const uint64_t seed = seed_of(pattern);

    for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        const uint64_t word = word_at(seed, offset + at), left = bytes - at;
        const size_t count = left < sizeof word ? left : sizeof word;
        if (memcmp(data + at, &word, count) == 0)
            continue;
        size_t wrong = 0;
        while (data[at + wrong] == ((const unsigned char *)&word)[wrong])
            wrong++;
        return fail(EBADMSG,
                    "data from rank %u arrived damaged at byte %llu: the transport, the network "
                    "card or memory is faulty",
                    pattern->rank, (unsigned long long)(offset + at + wrong));
    }
    return 0;
}

/* Small whole numbers: floats add up exactly in any order as long as the sum is below 2^24, which
 * holds for 5000 ranks. */
static float value_at(uint64_t turn, uint64_t index)
{
    return (float)((uint32_t)((index + turn * 31) * UINT64_C(2654435761) >> 16) & 63);
}

static float share_of(uint32_t rank)
{
    return (float)(rank % 1024 + 1);
}

void pattern_fill_floats(const struct pattern *pattern, unsigned char *data, uint64_t bytes)
{
    const float share = share_of(pattern->rank);

    assert(bytes % sizeof share == 0);
    for (uint64_t i = 0; i < bytes / sizeof share; i++)
        memcpy(data + i * sizeof share, &(float){value_at(pattern->turn, i) + share}, sizeof share);
}

int pattern_check_sum(uint64_t turn, uint32_t ranks, uint64_t offset, const unsigned char *data,
                      uint64_t bytes)
{
    float shares = 0, value;

    for (uint32_t rank = 0; rank < ranks; rank++)
        shares += share_of(rank);
    for (uint64_t at = 0; at < bytes; at += sizeof value) {
        const float wanted = (float)ranks * value_at(turn, (offset + at) / sizeof value) + shares;
        memcpy(&value, data + at, sizeof value);
        if (!(value >= wanted && value <= wanted)) /* nor NaN */
            return fail(EBADMSG,
                        "a sum over all ranks is wrong at byte %llu: %.9g instead of %.9g: the "
                        "transport, a network card or memory is faulty",
                        (unsigned long long)(offset + at), (double)value, (double)wanted);
    }
    return 0;
}
