/* SPDX-License-Identifier: Apache-2.0
 *
 * Which checkpoint jobs are refused for lack of space: statvfs(2) says what a test wants.
 */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "cmd/checkpoint/checkpoint.h"

#include <errno.h>
#include <sys/statvfs.h>

static uint64_t free_bytes;
static unsigned answers;

int statvfs(const char *path, struct statvfs *status)
{
    if (access(path, F_OK))
        return -1;
    answers++;
    *status = (struct statvfs){.f_frsize = 4096, .f_bavail = free_bytes / 4096};
    return 0;
}

enum { EACH = 1 << 20 };

/* Writes that many checkpoints where free space is `percent` of one. Returns how it went. */
static int run(const char *folder, uint64_t writes, uint64_t keep, uint64_t percent)
{
    struct ranks ranks = ranks_alone();
    struct checkpoint_result result;
    struct checkpoint_job job = {.path = folder_path(folder),
                                 .model.bytes = EACH,
                                 .chunk_bytes = 65536,
                                 .depth = 1,
                                 .reader = "auto",
                                 .sync = true,
                                 .leave = true,
                                 .writes = writes,
                                 .keep = keep};

    assert_int_equal(model_choose("8b", &job.model.model), 0);
    free_bytes = percent * EACH / 100;
    answers = 0;
    const int code = checkpoint_run(&job, &ranks, &result);
    checkpoint_destroy(&result);
    return code;
}

/* Whether these, in ascending order, and no others are there. */
static void expect_left(const char *folder, const char *numbers)
{
    char found[64] = "";

    for (int i = 1; i < 20; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/checkpoint-%06d", folder, i);
        if (file_exists(folder_path(name)))
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%d",
                     found[0] ? " " : "", i);
    }
    assert_string_equal(found, numbers);
}

static void expect_refused(int code)
{
    if (code != -ENOSPC || !strstr(fail_reason(), " free"))
        fail_msg("%d: %s", code, fail_reason());
}

static void expect_good(int code)
{
    if (code)
        fail_msg("%d: %s", code, fail_reason());
}

static void an_empty_folder_needs_one_more_than_is_kept(void **unused)
{
    expect_refused(run("empty", 5, 2, 290));
    assert_false(file_exists(folder_path("empty")));
    expect_good(run("empty", 5, 2, 340));
    expect_left("empty", "4 5");
    expect_refused(run("few", 2, 5, 190));
    expect_good(run("few", 2, 5, 240));
    expect_left("few", "1 2");
}

/* A job that was killed left one too many, or fewer are to be kept now. */
static void surplus_ones_make_room_before_the_first_write(void **unused)
{
    expect_good(run("surplus", 3, 3, 1000));
    expect_refused(run("surplus", 3, 3, 5)); /* refused, it removes none */
    expect_left("surplus", "1 2 3");
    expect_refused(run("surplus", 1, 3, 90)); /* none goes before the first is whole */
    expect_left("surplus", "1 2 3");
    expect_good(run("surplus", 1, 1, 5)); /* two go */
    expect_left("surplus", "4");
}

/* As many as are kept are there: each goes when its successor is whole. */
static void one_more_is_enough_where_older_ones_go(void **unused)
{
    expect_good(run("full", 2, 2, 1000));
    expect_refused(run("full", 9, 2, 90));
    expect_left("full", "1 2");
    expect_good(run("full", 9, 2, 130));
    expect_left("full", "10 11");
    /* One more is kept, and then one goes. */
    expect_refused(run("full", 9, 3, 190));
    expect_left("full", "10 11");
    expect_good(run("full", 3, 3, 240));
    expect_left("full", "12 13 14");
}

static void what_is_no_checkpoint_frees_nothing(void **unused)
{
    static char mine[3 * EACH];

    expect_good(run("mixed", 1, 1, 1000));
    assert_int_equal(mkdir(folder_path("mixed/checkpoint-000002"), 0777), 0);
    folder_write("mixed/checkpoint-000002/thesis", mine, sizeof mine);
    expect_refused(run("mixed", 3, 1, 90));
    expect_left("mixed", "1 2");
}

/* Between two questions others may take the space, and a refused job would leave a folder. */
static void space_is_asked_for_once(void **unused)
{
    expect_good(run("new/folder", 1, 1, 1000));
    assert_int_equal(answers, 1);
    expect_good(run("new/folder", 1, 1, 1000));
    assert_int_equal(answers, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_folder_needs_one_more_than_is_kept),
        cmocka_unit_test(surplus_ones_make_room_before_the_first_write),
        cmocka_unit_test(one_more_is_enough_where_older_ones_go),
        cmocka_unit_test(what_is_no_checkpoint_frees_nothing),
        cmocka_unit_test(space_is_asked_for_once),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
