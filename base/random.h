/* SPDX-License-Identifier: Apache-2.0
 *
 * random: the documented generators behind every order, crop and made image. The same seed gives
 * the same bits on every machine and in every version.
 *
 * - random_mix(): the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
 * - struct random: xoshiro256** 1.0 (Blackman, Vigna 2018), seeded by SplitMix64.
 * - random_below(): unbiased, by multiplication and rejection (Lemire 2019).
 * - struct permutation: a bijection on [0, count) without a table: a balanced Feistel network
 *   on the next even power of two of bits, walked until the value falls inside (Black and
 *   Rogaway 2002).
 */
#ifndef IOBENCH_BASE_RANDOM_H
#define IOBENCH_BASE_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state[4];
};

uint64_t random_mix(uint64_t value);
/* One seed out of several numbers: (seed, epoch, rank, ...). Order matters. */
uint64_t random_hash(uint64_t seed, uint64_t a, uint64_t b);

struct random random_start(uint64_t seed);
uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t bound); /* bound >= 1 */
double random_unit(struct random *random);                    /* [0, 1), 53 bits */
double random_normal(struct random *random);                  /* mean 0, deviation 1 */

/* Fisher-Yates, in place. */
void random_shuffle_u32(struct random *random, uint32_t *values, uint64_t count);
void random_shuffle_u64(struct random *random, uint64_t *values, uint64_t count);

enum { PERMUTATION_ROUNDS = 6 };

struct permutation {
    uint64_t count;
    uint32_t half_bits;
    uint64_t half_mask;
    uint64_t keys[PERMUTATION_ROUNDS];
};

struct permutation permutation_start(uint64_t seed, uint64_t count); /* count >= 1 */
uint64_t permutation_at(const struct permutation *permutation, uint64_t index);

#endif
