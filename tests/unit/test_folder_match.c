/* SPDX-License-Identifier: Apache-2.0
 * Patterns find names as glob(3) does. */
#include "tests/unit/folder.h"

#include <sys/stat.h>

static void put(const char *name)
{
    folder_write(name, "text", 4);
}

static void assert_matches(const char *pattern, const char *first, size_t count)
{
    struct folder_names names;

    assert_int_equal(folder_names_matching(&names, folder_path(pattern)), 0);
    assert_int_equal(names.count, count);
    if (count)
        assert_string_equal(names.list[0], folder_path(first));
    folder_names_release(&names);
}

static void patterns_find_names(void **unused)
{
    (void)unused;
    assert_int_equal(mkdir(folder_path("b1"), 0700), 0);
    assert_int_equal(mkdir(folder_path("b2"), 0700), 0);
    put("b2/x");
    put("b1/x");
    put("b3");
    put(".b4");
    put("[b]1");
    assert_matches("b*", "b1", 3);
    assert_matches("b*/x", "b1/x", 2);
    assert_matches("*/x", "b1/x", 2);
    assert_matches("?b?1", "[b]1", 1); /* a name, and no pattern after it */
    assert_matches(".b*", ".b4", 1);
    assert_matches("b3", "b3", 1);
    assert_matches("absent", NULL, 0);
    assert_matches("absent/*", NULL, 0);
    assert_matches("b3/*", NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(patterns_find_names, folder_setup, folder_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
