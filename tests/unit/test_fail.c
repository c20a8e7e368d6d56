/* SPDX-License-Identifier: Apache-2.0
 * The reason of a failure, and what keeps it.
 */
#include "tests/unit/unit.h"

#include "base/fail.h"

#include <errno.h>

static void a_reason_may_quote_the_one_before(void **unused)
{
    assert_int_equal(fail(EIO, "%s: %d", "file", 7), -EIO);
    assert_int_equal(fail(-EINVAL, "option: %s", fail_reason()), -EINVAL);
    assert_string_equal(fail_reason(), "option: file: 7");
}

static void a_held_reason_stays(void **unused)
{
    fail(EIO, "first");
    fail_hold();
    assert_int_equal(fail(ENOENT, "cleaning up"), -ENOENT);
    fail_hold();
    fail_clear();
    fail_release();
    fail(ENOENT, "cleaning up");
    assert_string_equal(fail_reason(), "first");
    fail_release();
    fail(ENOENT, "next");
    assert_string_equal(fail_reason(), "next");
    fail_clear();
    fail_hold();
    fail(ENOENT, "cleaning up");
    fail_release();
    assert_string_equal(fail_reason(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_may_quote_the_one_before),
        cmocka_unit_test(a_held_reason_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
