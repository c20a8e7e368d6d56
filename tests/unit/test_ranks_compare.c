/* SPDX-License-Identifier: Apache-2.0
 * Which rank has another number than rank 0. */
#include "tests/unit/unit.h"

#include "ranks/ranks.h"

#include <string.h>

enum { RANKS = 4 };

static uint64_t numbers[RANKS];

static int fake_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    (void)state;
    for (uint32_t i = 0; i < RANKS; i++)
        if (bytes == sizeof numbers[i])
            memcpy((uint8_t *)all + i * bytes, &numbers[i], bytes);
        else /* ranks_meet(): none failed */
            memcpy((uint8_t *)all + i * bytes, mine, bytes);
    return 0;
}

static int fake_test(void *state, bool *done)
{
    (void)state;
    *done = true;
    return 0;
}

static int fake_hear(void *state, uint32_t *from, uint64_t *word, bool *heard)
{
    (void)state, (void)from, (void)word;
    *heard = false;
    return 0;
}

static uint32_t other_than(uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
    static const struct ranks_ops fake = {
        .gather = fake_gather, .test = fake_test, .hear = fake_hear};
    struct ranks ranks = {.ops = &fake, .place = {.ranks = RANKS}};
    const uint64_t all[RANKS] = {first, second, third, fourth};
    uint32_t other = RANKS;

    memcpy(numbers, all, sizeof all);
    assert_int_equal(ranks_compare(&ranks, first, &other), 0);
    return other;
}

static void the_first_other_rank_is_found(void **unused)
{
    const uint64_t large = UINT64_C(1) << 63;

    (void)unused;
    assert_int_equal(other_than(7, 7, 7, 7), 0);
    assert_int_equal(other_than(0, 0, 0, 0), 0);
    assert_int_equal(other_than(7, 7, 7, 8), 3);
    assert_int_equal(other_than(7, 9, 7, 8), 1);
    assert_int_equal(other_than(7, 8, 8, 8), 1);
    assert_int_equal(other_than(large, large, 0, large), 2);
}

static void a_lone_process_agrees_with_itself(void **unused)
{
    struct ranks ranks = ranks_alone();
    uint32_t other = 1;

    (void)unused;
    assert_int_equal(ranks_compare(&ranks, 5, &other), 0);
    assert_int_equal(other, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_other_rank_is_found),
        cmocka_unit_test(a_lone_process_agrees_with_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
