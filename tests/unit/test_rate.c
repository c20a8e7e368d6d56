/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "readers/depth.h"

/* Return bytes/s over ten seconds if the sleeper wakes up to late_ns too late. */
static double run(uint64_t bytes_per_s, uint64_t late_ns)
{
    struct rate rate = {.bytes_per_s = bytes_per_s};
    struct random random = random_start(bytes_per_s);
    const uint64_t start_ns = 12345;
    uint64_t now_ns = start_ns, total = 0;

    while (now_ns < start_ns + UINT64_C(10000000000)) {
        uint64_t wait_ns = rate_wait_ns(&rate, now_ns);
        if (wait_ns) {
            now_ns += wait_ns + random_below(&random, late_ns + 1);
            continue;
        }
        uint64_t bytes = 4096 + random_below(&random, 200000);
        rate_spend(&rate, bytes);
        total += bytes;
    }
    return (double)total / ((double)(now_ns - start_ns) * 1e-9);
}

static void the_rate_holds_within_a_percent(void **unused)
{
    static const uint64_t rates[] = {20000000, 209715200, 5000000000};

    for (int i = 0; i < 3; i++) {
        assert_true(run(rates[i], 0) / (double)rates[i] < 1.01);
        assert_true(run(rates[i], 0) / (double)rates[i] > 0.99);
        assert_true(run(rates[i], 30000000) / (double)rates[i] < 1.01);
        assert_true(run(rates[i], 30000000) / (double)rates[i] > 0.99);
    }
}

static void a_pause_is_not_caught_up(void **unused)
{
    struct rate rate = {.bytes_per_s = 1000000};
    uint64_t now_ns = 1, burst = 0;

    assert_int_equal(rate_wait_ns(&rate, now_ns), 0);
    now_ns += UINT64_C(60000000000);
    for (; rate_wait_ns(&rate, now_ns) == 0; burst += 1000)
        rate_spend(&rate, 1000);
    assert_in_range(burst, 250000, 252000);
}

/* Nor is a shorter pause caught up beyond the credit. */
static void a_short_pause_is_caught_up_by_the_credit(void **unused)
{
    struct rate rate = {.bytes_per_s = 1000000};
    uint64_t now_ns = 1, burst = 0;

    assert_int_equal(rate_wait_ns(&rate, now_ns), 0);
    now_ns += RATE_CREDIT_NS + RATE_CREDIT_NS / 2;
    for (; rate_wait_ns(&rate, now_ns) == 0; burst += 1000)
        rate_spend(&rate, 1000);
    assert_in_range(burst, 250000, 252000);
}

static void no_limit_is_no_wait(void **unused)
{
    struct rate rate = {0};

    rate_spend(&rate, UINT64_MAX);
    assert_int_equal(rate_wait_ns(&rate, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_holds_within_a_percent),
        cmocka_unit_test(a_pause_is_not_caught_up),
        cmocka_unit_test(a_short_pause_is_caught_up_by_the_credit),
        cmocka_unit_test(no_limit_is_no_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
