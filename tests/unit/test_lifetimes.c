/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "trainer/backend.h"

#include <stdbool.h>

static void those_needed_together_never_share(void **unused)
{
    enum { COUNT = 120 };
    struct random random = random_start(11);

    for (int round = 0; round < 50; round++) {
        struct lifetime lifetimes[COUNT];
        uint64_t total = 0, sum = 0;
        for (int i = 0; i < COUNT; i++) {
            uint32_t first = (uint32_t)random_below(&random, 100);
            lifetimes[i] =
                (struct lifetime){.first = first,
                                  .last = first + (uint32_t)random_below(&random, 20),
                                  .bytes = random_below(&random, 5) * random_below(&random, 999)};
            sum += lifetimes[i].bytes + 63;
        }
        assert_int_equal(lifetimes_plan(lifetimes, sizeof *lifetimes, COUNT, &total), 0);
        assert_true(total < sum);
        for (int i = 0; i < COUNT; i++) {
            const struct lifetime *a = &lifetimes[i];
            assert_true(a->bytes == 0 || (a->offset % 64 == 0 && a->offset + a->bytes <= total));
            for (int j = 0; j < i; j++) {
                const struct lifetime *b = &lifetimes[j];
                bool together = a->first <= b->last && b->first <= a->last;
                bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
                assert_true(!together || apart || a->bytes == 0 || b->bytes == 0);
            }
        }
    }
}

/* A chain needs two adjacent buffers at a time, whatever its length. */
static void a_chain_takes_two_places(void **unused)
{
    struct lifetime lifetimes[64];
    uint64_t total;

    for (uint32_t i = 0; i < 64; i++)
        lifetimes[i] = (struct lifetime){.first = i, .last = i + 1, .bytes = 4096};
    assert_int_equal(lifetimes_plan(lifetimes, sizeof *lifetimes, 64, &total), 0);
    assert_int_equal(total, 2 * 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_needed_together_never_share),
        cmocka_unit_test(a_chain_takes_two_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
