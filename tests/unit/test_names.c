/* SPDX-License-Identifier: Apache-2.0
 * Names get numbers in order, and the work does not grow with their count. */
#include "tests/unit/unit.h"

#include "base/option.h"

#include <stdio.h>
#include <string.h>

static int64_t number(struct names *names, const char *text)
{
    return names_number(names, text, strlen(text));
}

static void numbers_follow_the_order(void **unused)
{
    struct names names = {0};

    assert_int_equal(number(&names, "b"), 0);
    assert_int_equal(number(&names, "a"), 1);
    assert_int_equal(number(&names, ""), 2);
    assert_int_equal(number(&names, "ab"), 3);
    assert_int_equal(number(&names, "b"), 0);
    assert_int_equal(names_number(&names, "abc", 2), 3);
    assert_int_equal(names_number(&names, "abc", 1), 1);
    assert_int_equal(names.count, 4);
    assert_string_equal(names.texts[3], "ab");
    names_release(&names);
}

/* Slots probed per look-up; in a list, half the names. */
static void many_names_cost_no_more_each(void **unused)
{
    enum { COUNT = 200000 };
    struct names names = {0};
    char text[16];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            snprintf(text, sizeof text, "n%08d", i);
            assert_int_equal(number(&names, text), i);
        }
    }
    assert_int_equal(names.count, COUNT);
    assert_true(names.probes < 10 * (uint64_t)COUNT);
    names_release(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_follow_the_order),
        cmocka_unit_test(many_names_cost_no_more_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
