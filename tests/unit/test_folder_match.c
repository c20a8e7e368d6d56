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

/* The folder of the tests themselves: a cut name leads to another place, perhaps another file
 * system. */
static void tests_work_in_a_long_folder(void **unused)
{
    const char *former = getenv("TMPDIR");
    char own[sizeof test_folder], before[512] = "", deep[sizeof test_folder + 130];

    snprintf(own, sizeof own, "%s", test_folder);
    snprintf(before, sizeof before, "%s", former ? former : "");
    snprintf(deep, sizeof deep, "%s/%0120d", own, 0);
    if (strlen(deep) > 230)
        skip();
    assert_int_equal(folder_make_path(deep), 0);
    setenv("TMPDIR", deep, 1);
    const int code = folder_setup(NULL);
    const bool is_within = strncmp(test_folder, deep, strlen(deep)) == 0;
    snprintf(test_folder, sizeof test_folder, "%s", own);
    if (former)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    assert_int_equal(code, 0);
    assert_true(is_within);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(patterns_find_names, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(tests_work_in_a_long_folder, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
