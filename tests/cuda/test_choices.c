/* SPDX-License-Identifier: Apache-2.0
 * The file of plans among jobs that run side by side: what any of them found stays. */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "trainer/cuda/dnn.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 4, ROUNDS = 20 };

static void name_row(int job, int round, char key[64])
{
    snprintf(key, 64, "job %d, layer %d", job, round);
}

/* Read what is there and add what was found, as each start does. */
static void find_plans(const char *path, int job)
{
    for (int round = 0; round < ROUNDS; round++) {
        const struct dnn_choice choice = {.engine = job};
        json_t *choices = dnn_choices_read(path);
        char key[64];
        name_row(job, round, key);
        if (!choices || dnn_choices_put(choices, key, &choice, 1, 0.5) ||
            dnn_choices_write(choices, path))
            _exit(1);
        json_decref(choices);
    }
    _exit(0);
}

static void jobs_side_by_side_lose_no_plan(void **unused)
{
    const char *path = folder_path("plans.json");
    pid_t jobs[JOBS];

    for (int job = 0; job < JOBS; job++) {
        jobs[job] = fork();
        assert_true(jobs[job] >= 0);
        if (jobs[job] == 0)
            find_plans(path, job);
    }
    for (int job = 0; job < JOBS; job++) {
        int status = -1;
        assert_int_equal(waitpid(jobs[job], &status, 0), jobs[job]);
        assert_int_equal(status, 0);
    }
    json_t *choices = dnn_choices_read(path);
    for (int job = 0; job < JOBS; job++)
        for (int round = 0; round < ROUNDS; round++) {
            struct dnn_choice choice;
            uint32_t candidates;
            double milliseconds;
            char key[64];
            name_row(job, round, key);
            if (!dnn_choices_get(choices, key, &choice, &candidates, &milliseconds))
                fail_msg("%s was lost", key);
            assert_int_equal(choice.engine, job);
        }
    json_decref(choices);
}

/* One that was wrong is not found again, neither here nor in the file; the others are, and it may
 * come back. */
static void a_wrong_plan_leaves_the_file(void **unused)
{
    const char *path = folder_path("plans.json");
    const struct dnn_choice written = {.engine = 7};
    struct dnn_choice choice;
    uint32_t candidates;
    double milliseconds;

    for (int round = 0; round < 2; round++) {
        json_t *choices = dnn_choices_read(path);
        assert_int_equal(dnn_choices_put(choices, "wrong", &written, 1, 0.5), 0);
        assert_int_equal(dnn_choices_write(choices, path), 0);
        json_decref(choices);
        choices = dnn_choices_read(path);
        assert_true(dnn_choices_get(choices, "wrong", &choice, &candidates, &milliseconds));
        assert_int_equal(dnn_choices_drop(choices, "wrong"), 0);
        assert_false(dnn_choices_get(choices, "wrong", &choice, &candidates, &milliseconds));
        assert_int_equal(dnn_choices_write(choices, path), 0);
        json_decref(choices);
        choices = dnn_choices_read(path);
        assert_false(dnn_choices_get(choices, "wrong", &choice, &candidates, &milliseconds));
        assert_true(
            dnn_choices_get(choices, "job 0, layer 0", &choice, &candidates, &milliseconds));
        json_decref(choices);
    }
}

/* Jobs leave no file but the plans. */
static void nothing_else_is_left(void **unused)
{
    DIR *folder = opendir(folder_path("."));
    const struct dirent *entry;
    int files = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)))
        files += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    assert_int_equal(files, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_side_by_side_lose_no_plan),
        cmocka_unit_test(a_wrong_plan_leaves_the_file),
        cmocka_unit_test(nothing_else_is_left),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
