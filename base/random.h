/* SPDX-License-Identifier: Apache-2.0
 *
 * random: the documented generators behind every shuffle, crop and synthetic image. The same seed
 * gives the same bits on every machine and in every version.
 *
 * - random_mix(): the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
 * - struct random: xoshiro256** 1.0 (Blackman, Vigna 2018), seeded by SplitMix64.
 * - random_below(): unbiased, by multiplication and rejection (Lemire 2019).
 * - struct permutation: a bijection on [0, count) without a table: six rounds of an unbalanced
 *   Feistel network on rows x 2^k >= count, adding modulo the rows on one side and XOR on the
 *   other, cycle-walked until the value is in range (Black and Rogaway 2002). Not for secrets. Up
 *   to 256 values are shuffled in a table instead, since so small a network does not reach all
 *   orders equally often.
 */
#ifndef IOBENCH_BASE_RANDOM_H
#define IOBENCH_BASE_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state[4];
};

uint64_t random_mix(uint64_t value);
/* Hash several numbers into one seed: (seed, epoch, rank, ...). Order matters. */
uint64_t random_hash(uint64_t seed, uint64_t a, uint64_t b);
uint64_t random_hash_text(uint64_t seed, const char *text); /* the end of the text is hashed too */

struct random random_start(uint64_t seed);
uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t bound); /* bound >= 1 */
double random_unit(struct random *random);                    /* [0, 1), 53 bits */
double random_normal(struct random *random);                  /* standard normal */
/* Fill values[0 .. count) with normals of this deviation, numbers first .. first + count of the
 * sequence of this seed. Each depends on the seed and its number alone, so that threads may fill
 * parts of one sequence. `first` is even. */
void random_normals(uint64_t seed, uint64_t first, uint64_t count, double deviation, float *values);

void random_shuffle_u32(struct random *random, uint32_t *values, uint64_t count); /* in place */
/* Write the order in which `count` cells take their turns in a round: 0 .. count - 1, drawn anew
 * for each round, so that a drift of the machine affects all alike. A function of its arguments:
 * ranks agree on it, and a resumed round has it again. */
void random_order(uint64_t seed, uint64_t round, uint32_t *order, uint32_t count);

enum { PERMUTATION_ROUNDS = 6, PERMUTATION_TABLE = 256 };

struct permutation {
    uint64_t count;
    union {
        struct {
            uint32_t low_bits;
            uint64_t low_mask, high_count;
            uint64_t keys[PERMUTATION_ROUNDS];
        };
        struct {
            uint8_t forward[PERMUTATION_TABLE], inverse[PERMUTATION_TABLE];
        };
    };
};

struct permutation permutation_start(uint64_t seed, uint64_t count);
/* index, value < count; the two are inverses. */
uint64_t permutation_at(const struct permutation *permutation, uint64_t index);
uint64_t permutation_inverse(const struct permutation *permutation, uint64_t value);

#endif
