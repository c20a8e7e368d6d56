/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Chi-square over cells that should be equally full, in standard deviations from its mean. */
static double excess(const uint32_t *cells, uint32_t count, double expected)
{
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += (cells[i] - expected) * (cells[i] - expected) / expected;
    return (sum - (count - 1)) / sqrt(2.0 * (count - 1));
}

/* Published first outputs: SplitMix64 for seed 1234567, xoshiro256** from the state 1 2 3 4. */
static void generators_are_the_published_ones(void **unused)
{
    static const uint64_t splitmix[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
        UINT64_C(4593380528125082431)};
    static const uint64_t xoshiro[] = {11520,
                                       0,
                                       1509978240,
                                       UINT64_C(1215971899390074240),
                                       UINT64_C(1216172134540287360),
                                       UINT64_C(607988272756665600),
                                       UINT64_C(16172922978634559625),
                                       UINT64_C(8476171486693032832)};
    struct random random = random_start(1234567);

    assert_memory_equal(random.state, splitmix, sizeof splitmix);
    random = (struct random){{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof xoshiro / sizeof *xoshiro; i++)
        assert_true(random_next(&random) == xoshiro[i]);
}

static void bounded_numbers_are_even(void **unused)
{
    struct random random = random_start(1);
    uint32_t cells[7] = {0};

    for (int i = 0; i < 70000; i++)
        cells[random_below(&random, 7)]++;
    assert_true(fabs(excess(cells, 7, 10000)) < 4);
    for (int i = 0; i < 1000; i++) {
        assert_true(random_below(&random, 1) == 0);
        assert_true(random_below(&random, UINT64_C(3) << 62) < UINT64_C(3) << 62);
        assert_true(random_unit(&random) < 1);
    }
}

/* Cells of equal probability by the error function; each value against the next, pairs included. */
static void normals_are_normal_and_known_by_number(void **unused)
{
    enum { COUNT = 200001, CELLS = 100 };
    float *all = malloc(COUNT * sizeof *all), part[77];
    uint32_t cells[CELLS] = {0};
    double sum = 0, product[2] = {0};

    random_normals(9, 0, COUNT, 3, all);
    for (int i = 0; i < COUNT; i++) {
        cells[(int)(CELLS * (0.5 + 0.5 * erf(all[i] / 3 * M_SQRT1_2)))]++;
        sum += all[i];
        product[i % 2] += i ? (double)all[i] * all[i - 1] : 0;
    }
    assert_true(fabs(excess(cells, CELLS, COUNT / (double)CELLS)) < 4);
    assert_true(fabs(sum) < 4 * 3 * sqrt(COUNT));
    for (int i = 0; i < 2; i++)
        assert_true(fabs(product[i]) < 4 * 9 * sqrt(COUNT / 2));
    for (uint64_t first = 0; first + 77 <= COUNT; first += 5000) {
        random_normals(9, first, 77, 3, part);
        assert_memory_equal(part, all + first, sizeof part);
    }
    random_normals(10, 0, 77, 3, part);
    assert_memory_not_equal(part, all, sizeof part);
    free(all);
}

static void a_permutation_is_a_bijection_with_an_inverse(void **unused)
{
    for (uint64_t count = 1; count < 2100; count += count < 300 ? 1 : 97) {
        struct permutation permutation = permutation_start(count, count);
        uint8_t seen[2100] = {0};
        for (uint64_t i = 0; i < count; i++) {
            uint64_t value = permutation_at(&permutation, i);
            assert_true(value < count && !seen[value]);
            seen[value] = 1;
            assert_true(permutation_inverse(&permutation, value) == i);
        }
    }
    const uint64_t large[] = {UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1000000007),
                              (UINT64_C(1) << 63) + 1, UINT64_MAX};
    for (size_t k = 0; k < sizeof large / sizeof *large; k++) {
        struct permutation permutation = permutation_start(k, large[k]);
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t index = i % 2 ? large[k] - 1 - i : i;
            uint64_t value = permutation_at(&permutation, index);
            assert_true(value < large[k]);
            assert_true(permutation_inverse(&permutation, value) == index);
        }
    }
}

/* All 120 orders of five are equally likely. */
static void small_permutations_reach_every_order(void **unused)
{
    uint32_t orders[120] = {0};

    for (uint64_t seed = 0; seed < 24000; seed++) {
        struct permutation permutation = permutation_start(seed, 5);
        uint32_t rank = 0;
        for (uint32_t i = 0; i < 5; i++) {
            uint32_t before = 0;
            for (uint32_t j = i + 1; j < 5; j++)
                before += permutation_at(&permutation, j) < permutation_at(&permutation, i);
            rank = rank * (5 - i) + before;
        }
        orders[rank]++;
    }
    assert_true(fabs(excess(orders, 120, 200)) < 4);
}

/* For large counts: the image of a value is uniform, two adjacent values and two values with a
 * common half map independently, and values stay in place or follow each other as often as by
 * chance. */
static void large_permutations_look_random(void **unused)
{
    static const uint64_t counts[] = {512, 784, 1040, 65536};
    enum { SEEDS = 25600 };

    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const uint64_t count = counts[k];
        uint32_t pairs[256] = {0}, halves[256] = {0}, fixed = 0, follow = 0;
        uint64_t half = 1;
        while (half * half < count)
            half *= 2;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct permutation permutation = permutation_start(seed, count);
            const uint64_t first = permutation_at(&permutation, 0) * 16 / count;
            const uint64_t next = permutation_at(&permutation, 1) * 16 / count;
            const uint64_t below = permutation_at(&permutation, half) * 16 / count;
            pairs[first * 16 + next]++;
            halves[first * 16 + below]++;
        }
        assert_true(fabs(excess(pairs, 256, SEEDS / 256.0)) < 4);
        assert_true(fabs(excess(halves, 256, SEEDS / 256.0)) < 4);
        for (uint64_t seed = 0; seed < 65536 * 4 / count; seed++) {
            struct permutation permutation = permutation_start(seed, count);
            uint64_t last = UINT64_MAX - 1;
            for (uint64_t i = 0; i < count; i++) {
                const uint64_t value = permutation_at(&permutation, i);
                fixed += value == i;
                follow += value == last + 1;
                last = value;
            }
        }
        const double runs = 65536 * 4.0 / (double)count; /* each is expected once per run */
        assert_true(fabs(fixed - runs) < 5 * sqrt(runs));
        assert_true(fabs(follow - runs) < 5 * sqrt(runs));
    }
}

/* Fixed forever: a seed gives the same order in every version and on every machine. */
static void orders_never_change(void **unused)
{
    static const uint64_t small[] = {6, 7, 2, 9, 0, 3, 8, 1, 4, 5};
    static const uint64_t large[] = {769774, 830664, 111571, 1238232, 356463, 857039};
    struct permutation permutation = permutation_start(1, 10);
    struct permutation many = permutation_start(1, 1281167);

    for (uint64_t i = 0; i < 10; i++)
        assert_true(permutation_at(&permutation, i) == small[i]);
    for (uint64_t i = 0; i < 6; i++)
        assert_true(permutation_at(&many, i) == large[i]);
    assert_true(random_hash(1, 2, 3) == UINT64_C(14892593832342890272));
}

/* Each of eight cells once; another order in the next round, the same again for the same round. */
static void each_round_has_its_order(void **unused)
{
    uint32_t order[8], next[8], again[8], seen = 0;

    random_order(5, 0, order, 8);
    random_order(5, 1, next, 8);
    random_order(5, 0, again, 8);
    for (int i = 0; i < 8; i++)
        seen |= 1u << order[i];
    assert_int_equal(seen, 0xff);
    assert_memory_equal(order, again, sizeof order);
    assert_memory_not_equal(order, next, sizeof order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generators_are_the_published_ones),
        cmocka_unit_test(bounded_numbers_are_even),
        cmocka_unit_test(each_round_has_its_order),
        cmocka_unit_test(normals_are_normal_and_known_by_number),
        cmocka_unit_test(a_permutation_is_a_bijection_with_an_inverse),
        cmocka_unit_test(small_permutations_reach_every_order),
        cmocka_unit_test(large_permutations_look_random),
        cmocka_unit_test(orders_never_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
