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
    assert_ptr_equal(store_of(path), &store_demo);
    assert_false(store_is_local(path));
    assert_true(store_is_local("/demo://a"));
    assert_int_equal(store_check(path), 0);
    assert_true(store_exists(path) && store_is_folder("demo://server/set"));
}

static void expect_refused(int code, const char *why)
{
    assert_int_equal(code, -ENOTSUP);
    assert_reason(why);
    fail_clear();
}

static void what_is_missing_says_why(void **unused)
{
    static const char why[] = "absent://a: built without it";
    struct store_status status;
    struct store_file *file;

    expect_refused(store_check("absent://a"), why);
    expect_refused(store_stat("absent://a", &status), why);
    expect_refused(store_open("absent://a", STORE_READ, &file), why);
}

static void nothing_changes_it(void **unused)
{
    static const char why[] = "demo:// is read-only";
    struct store_file *file;
    uint64_t bytes;

    expect_refused(store_open(path, STORE_CREATE, &file), why);
    expect_refused(store_open(path, STORE_EXTEND, &file), why);
    expect_refused(store_draft(path, &file), why);
    expect_refused(store_rename(path, "demo://server/set/b.jpg"), why);
    expect_refused(store_remove(path), why);
    expect_refused(store_make_folders("demo://server/new.jpg/set"), why);
    expect_refused(store_free_bytes(path, &bytes), why);
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
