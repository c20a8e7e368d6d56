/* SPDX-License-Identifier: Apache-2.0
 * A read-only storage, known to the program only by its registry row. */
#include "dataset/store.h"

#include "base/fail.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

static int demo_stat(const char *path, struct store_status *status)
{
    *status = (struct store_status){.kind = strstr(path, ".jpg") ? STORE_FILE : STORE_FOLDER};
    return 0;
}

static const struct store_ops store_demo = {
    .scheme = "demo://", .client = "demo", .stat = demo_stat};
static const struct store_ops store_absent = {.scheme = "absent://", .missing = "built without it"};
const struct store_ops *const store_registry[] = {&store_demo, &store_absent, &store_local};

static const char path[] = "demo://server/set/a.jpg";

static void it_is_found_by_its_scheme(void **unused)
{
    (void)unused;
    assert_ptr_equal(store_of(path), &store_demo);
    assert_false(store_is_local(path));
    assert_true(store_is_local("/demo://a"));
    assert_int_equal(store_check(path), 0);
    assert_true(store_exists(path) && store_is_folder("demo://server/set"));
}

static void what_is_missing_says_why(void **unused)
{
    struct store_status status;
    struct store_file *file;

    (void)unused;
    assert_int_equal(store_check("absent://a"), -ENOTSUP);
    assert_string_equal(fail_reason(), "absent://a: built without it");
    fail_clear();
    assert_int_equal(store_stat("absent://a", &status), -ENOTSUP);
    assert_string_equal(fail_reason(), "absent://a: built without it");
    fail_clear();
    assert_int_equal(store_open("absent://a", STORE_READ, &file), -ENOTSUP);
    assert_string_equal(fail_reason(), "absent://a: built without it");
    fail_clear();
}

static void expect_refused(int code)
{
    assert_int_equal(code, -ENOTSUP);
    assert_non_null(strstr(fail_reason(), "demo:// is read-only"));
    fail_clear();
}

static void nothing_changes_it(void **unused)
{
    struct store_file *file;
    uint64_t bytes;

    (void)unused;
    expect_refused(store_open(path, STORE_CREATE, &file));
    expect_refused(store_open(path, STORE_EXTEND, &file));
    expect_refused(store_draft(path, &file));
    expect_refused(store_rename(path, "demo://server/set/b.jpg"));
    expect_refused(store_remove(path));
    expect_refused(store_make_folders("demo://server/new.jpg/set"));
    expect_refused(store_free_bytes(path, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_found_by_its_scheme),
        cmocka_unit_test(what_is_missing_says_why),
        cmocka_unit_test(nothing_changes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
