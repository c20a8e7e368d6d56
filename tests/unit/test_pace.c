/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/stats.h"

#include <stdlib.h>

enum { READS = 100000, READ_BYTES = 100000 };

/* A device with a burst credit: 1 GB/s while the credit lasts, then half. Returns when all bytes
 * have arrived. */
static uint64_t read_all(struct pace *pace, uint64_t credit_bytes)
{
    uint64_t ns = 0;

    for (uint64_t i = 1; i <= READS; i++) {
        ns += i * READ_BYTES <= credit_bytes ? READ_BYTES : 2 * READ_BYTES;
        pace_add(pace, ns, i * READ_BYTES);
    }
    return ns;
}

/* For any number of points, both look-ups are within 1% of the total. */
static void lines_follow_what_was_added(void **unused)
{
    const uint64_t bytes = (uint64_t)READS * READ_BYTES, credit = bytes / 10;

    struct pace pace = {0};
    const uint64_t all_ns = read_all(&pace, credit);
    for (uint64_t k = 1; k <= 100; k++) {
        const uint64_t amount = bytes / 100 * k;
        const uint64_t ns = amount < credit ? amount : 2 * amount - credit;
        assert_true(llabs((long long)(pace_when(&pace, amount) - ns)) <= (long long)all_ns / 100);
        assert_true(llabs((long long)(pace_amount(&pace, ns) - amount)) <= (long long)bytes / 100);
    }
    assert_int_equal(pace_when(&pace, bytes), all_ns);
    assert_int_equal(pace_amount(&pace, all_ns), bytes);
    /* The quarter with a credit of a tenth of the total: 1.25 times as fast as the rest. */
    const uint64_t quarter_ns = pace_when(&pace, bytes / 4);
    const double ratio = (double)(all_ns - quarter_ns) / 3 / (double)quarter_ns;
    assert_true(ratio > 1.23 && ratio < 1.27);
}

static void ends_and_nothing(void **unused)
{
    struct pace pace = {0};

    assert_int_equal(pace_when(&pace, 5), 0);
    assert_int_equal(pace_amount(&pace, 5), 0);
    pace_add(&pace, 100, 10);
    pace_add(&pace, 200, 10); /* nothing arrived meanwhile */
    pace_add(&pace, 300, 30);
    assert_int_equal(pace_when(&pace, 1), 100);
    assert_int_equal(pace_when(&pace, 20), 250);
    assert_int_equal(pace_when(&pace, 99), 300);
    assert_int_equal(pace_amount(&pace, 1), 10);
    assert_int_equal(pace_amount(&pace, 150), 10);
    assert_int_equal(pace_amount(&pace, 250), 20);
    assert_int_equal(pace_amount(&pace, 999), 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_follow_what_was_added),
        cmocka_unit_test(ends_and_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
