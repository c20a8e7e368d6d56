/* SPDX-License-Identifier: Apache-2.0
 * What kill -9 leaves of a draft with a given name is replaced; one that is being written is not.
 */
#include "tests/unit/folder.h"

#include "base/draft.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static void only_a_draft_without_a_writer_is_stale(void **unused)
{
    const struct file_draft_options options = {.suffix = "next"};
    struct file_draft draft;

    (void)unused;
    char *path = strdup(folder_path("r")), *second = strdup(folder_path("second"));
    assert_int_equal(file_draft_remove_stale(path, "next"), 0); /* no draft */
    assert_int_equal(file_draft_open(&draft, path, &options), 0);
    assert_int_equal(file_draft_remove_stale(path, "next"), -EBUSY);
    assert_int_equal(file_draft_commit(&draft), 0);
    folder_write(".r.next.partial", "left", 4); /* left by a killed process */
    assert_int_equal(link(folder_path(".r.next.partial"), second), 0);
    assert_int_equal(file_draft_remove_stale(path, "next"), -EPERM);
    assert_int_equal(unlink(second), 0);
    assert_int_equal(file_draft_remove_stale(path, "next"), 0);
    assert_false(is_there(".r.next.partial"));
    assert_int_equal(symlink("r", folder_path(".r.next.partial")), 0);
    assert_true(file_draft_remove_stale(path, "next") < 0);
    assert_true(is_there(".r.next.partial"));
    assert_true(is_there("r"));
    assert_int_equal(unlink(folder_path(".r.next.partial")), 0);
    free(second);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_a_draft_without_a_writer_is_stale, folder_setup,
                                        folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
