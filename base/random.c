/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <math.h>

static const uint64_t golden_gamma = 0x9e3779b97f4a7c15u;

uint64_t random_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

uint64_t random_hash(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t hash = random_mix(seed + golden_gamma);

    hash = random_mix(hash ^ (a + golden_gamma * 2));
    return random_mix(hash ^ (b + golden_gamma * 3));
}

uint64_t random_hash_text(uint64_t seed, const char *text)
{
    for (; *text; text++)
        seed = random_hash(seed, (uint8_t)*text, 1);
    return random_hash(seed, 0, 2);
}

struct random random_start(uint64_t seed)
{
    struct random random;

    for (int i = 0; i < 4; i++) {
        seed += golden_gamma;
        random.state[i] = random_mix(seed);
    }
    return random;
}

static uint64_t rotate_left(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

uint64_t random_next(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    unsigned __int128 product = (unsigned __int128)random_next(random) * bound;

    if ((uint64_t)product < bound) {
        uint64_t threshold = -bound % bound;
        while ((uint64_t)product < threshold)
            product = (unsigned __int128)random_next(random) * bound;
    }
    return (uint64_t)(product >> 64);
}

double random_unit(struct random *random)
{
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

double random_normal(struct random *random)
{
    /* Box-Muller; discards one of the pair to keep the state at four words. */
    double u = 1.0 - random_unit(random);

    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * random_unit(random));
}

void random_normals(uint64_t seed, uint64_t first, uint64_t count, double deviation, float *values)
{
    /* Box-Muller on numbers of SplitMix64, whose state is a counter. */
    for (uint64_t i = 0; i < count; i += 2) {
        const uint64_t state = seed + (first + i) * golden_gamma;
        const double u = 1.0 - (double)(random_mix(state + golden_gamma) >> 11) * 0x1p-53;
        const double angle =
            2.0 * M_PI * (double)(random_mix(state + 2 * golden_gamma) >> 11) * 0x1p-53;
        const double radius = deviation * sqrt(-2.0 * log(u));
        values[i] = (float)(radius * cos(angle));
        if (i + 1 < count)
            values[i + 1] = (float)(radius * sin(angle));
    }
}

void random_shuffle_u32(struct random *random, uint32_t *values, uint64_t count)
{
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = random_below(random, i);
        uint32_t value = values[i - 1];
        values[i - 1] = values[j];
        values[j] = value;
    }
}

void random_order(uint64_t seed, uint64_t round, uint32_t *order, uint32_t count)
{
    struct random random = random_start(random_hash(seed, round, count));

    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    random_shuffle_u32(&random, order, count);
}

struct permutation permutation_start(uint64_t seed, uint64_t count)
{
    struct permutation permutation;
    uint64_t hash = random_hash(seed, count, 0);
    uint32_t bits = 2;

    permutation.count = count;
    if (count <= PERMUTATION_TABLE) {
        /* Too few values for a Feistel network to reach all orders evenly: a plain shuffle. */
        struct random random = random_start(hash);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t j = (uint32_t)random_below(&random, i + 1);
            permutation.forward[i] = permutation.forward[j];
            permutation.forward[j] = (uint8_t)i;
        }
        for (uint32_t i = 0; i < count; i++)
            permutation.inverse[permutation.forward[i]] = (uint8_t)i;
        return permutation;
    }
    while (bits < 64 && (count - 1) >> bits)
        bits++;
    permutation.low_bits = (bits + 1) / 2;
    permutation.low_mask = (UINT64_C(1) << permutation.low_bits) - 1;
    permutation.high_count = ((count - 1) >> permutation.low_bits) + 1;
    for (int i = 0; i < PERMUTATION_ROUNDS; i++) {
        hash += golden_gamma;
        permutation.keys[i] = random_mix(hash);
    }
    return permutation;
}

/* 32 bits. */
static inline uint64_t feistel_round(uint64_t half, uint64_t key)
{
    uint64_t product = (half + key) * 0x9e3779b97f4a7c15u;

    return (product ^ product >> 32) * 0xbf58476d1ce4e5b9u >> 32;
}

uint64_t permutation_at(const struct permutation *permutation, uint64_t index)
{
    const uint64_t *keys = permutation->keys, highs = permutation->high_count;

    if (permutation->count <= PERMUTATION_TABLE)
        return permutation->forward[index];
    /* The domain exceeds count by less than one row of low values, so walks are rare. */
    do {
        uint64_t high = index >> permutation->low_bits, low = index & permutation->low_mask;
        for (int i = 0; i < PERMUTATION_ROUNDS; i += 2) {
            high += feistel_round(low, keys[i]) * highs >> 32;
            high -= high >= highs ? highs : 0;
            low ^= feistel_round(high, keys[i + 1]) & permutation->low_mask;
        }
        index = high << permutation->low_bits | low;
    } while (index >= permutation->count);
    return index;
}

uint64_t permutation_inverse(const struct permutation *permutation, uint64_t value)
{
    const uint64_t *keys = permutation->keys, highs = permutation->high_count;

    if (permutation->count <= PERMUTATION_TABLE)
        return permutation->inverse[value];
    do {
        uint64_t high = value >> permutation->low_bits, low = value & permutation->low_mask;
        for (int i = PERMUTATION_ROUNDS - 2; i >= 0; i -= 2) {
            low ^= feistel_round(high, keys[i + 1]) & permutation->low_mask;
            high += highs - (feistel_round(low, keys[i]) * highs >> 32);
            high -= high >= highs ? highs : 0;
        }
        value = high << permutation->low_bits | low;
    } while (value >= permutation->count);
    return value;
}
