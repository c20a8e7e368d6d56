/* SPDX-License-Identifier: Apache-2.0
 * Files that change while being read, few descriptors, and readers closed midway. Every fault ends
 * in a message that names the file. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "tests/unit/reader_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const readers[] = {"uring", "uring:direct=yes", "pread", "pread:direct=yes",
                                      "mmap"};
enum { READERS = sizeof readers / sizeof *readers };

/* Returns false if the reader is unavailable, such as uring without liburing. */
static bool open_or_skip(struct run *run, size_t reader, uint32_t depth)
{
    const char *text = readers[reader];
    char name[16];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    if (!plugin_find(reader_registry, name))
        return false;
    int code = run_open(run, text, depth, PATIENCE_NS);
    if (code == -EOPNOTSUPP)
        run_close(run);
    else
        assert_int_equal(code, 0);
    return code == 0;
}

static void expect_change(int result)
{
    char *path = set_path(0);

    assert_refused(result, -ESTALE, path);
    free(path);
}

static void restore(void)
{
    set_write(0);
    set_index();
}

static void a_file_changed_since_the_index_is_refused(void **unused)
{
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char *path = set_path(0);
    struct run run;

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    for (size_t i = 0; i < READERS; i++) {
        if (!open_or_skip(&run, i, 2))
            continue;
        expect_change(run_read(&run, run_request(&run, 0, 0, 100, 100)));
        assert_reason("index it again");
        run_close(&run);
    }
    free(path);
    restore();
}

static void a_file_cut_short_while_open(void **unused)
{
    /* Past the end and in its page: there a map has zeros. */
    static const uint32_t lengths[] = {80000, 1000};
    char *path = set_path(0);
    struct run run;

    for (size_t i = 0; i < READERS * 2; i++) {
        if (!open_or_skip(&run, i / 2, 2))
            continue;
        struct read_request *request = run_request(&run, 0, 0, 0, 5000);
        assert_true(run_read(&run, request) >= 5000);
        reader_release(&run.reader, request);
        assert_int_equal(truncate(path, 600001), 0);
        request = run_request(&run, 0, 0, 600000, lengths[i % 2]);
        expect_change(run_read(&run, request));
        assert_reason("600001");
        assert_int_equal(run.reader.figures.errors, 1);
        run_close(&run);
        restore();
    }
    free(path);
}

static void a_file_replaced_while_open_is_noticed(void **unused)
{
    char *path = set_path(0), *fresh = file_format_path("%s.new", path);
    struct run runs[READERS];
    bool usable[READERS];

    for (size_t i = 0; i < READERS; i++) {
        usable[i] = open_or_skip(&runs[i], i, 2);
        if (!usable[i])
            continue;
        struct read_request *request = run_request(&runs[i], 0, 0, 0, 5000);
        assert_true(run_read(&runs[i], request) >= 5000);
        reader_release(&runs[i].reader, request);
    }
    int fd = open(fresh, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(fd, set_sizes[0]), 0);
    close(fd);
    assert_int_equal(rename(fresh, path), 0);
    usleep(1100000); /* an open file is checked again after a second */
    for (size_t i = 0; i < READERS; i++)
        if (usable[i]) {
            expect_change(run_read(&runs[i], run_request(&runs[i], 0, 0, 0, 5000)));
            run_close(&runs[i]);
        }
    free(path);
    free(fresh);
    restore();
}

static void a_missing_file_is_named(void **unused)
{
    char *path = set_path(0);
    struct run run;

    for (size_t i = 0; i < READERS; i++) {
        if (!open_or_skip(&run, i, 2))
            continue;
        unlink(path);
        assert_refused(run_read(&run, run_request(&run, 0, 0, 0, 100)), -ENOENT, path);
        run_close(&run);
        restore();
    }
    free(path);
}

static void closing_waits_for_what_is_in_flight(void **unused)
{
    struct run run;

    for (size_t i = 0; i < READERS; i++) {
        if (!open_or_skip(&run, i, 64))
            continue;
        for (uint32_t k = 0; k < 64; k++)
            assert_int_equal(reader_submit(&run.reader, run_request(&run, k, 0, k * 4096, 200000)),
                             0);
        assert_int_equal(reader_submit(&run.reader, run_request(&run, 63, 0, 0, 1)), -EAGAIN);
        fail(EINVAL, "why it is closed");
        run_close(&run);
        assert_int_equal(run.reader.in_flight, 0);
        assert_string_equal(fail_reason(), "why it is closed");
    }
}

/* All shards are read, although only a few can be open at a time. */
static void few_descriptors_are_enough(void **unused)
{
    struct rlimit few = {.rlim_cur = 70, .rlim_max = 70};
    struct run run;

    for (size_t i = 0; i < READERS; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child > 0) {
            int status;
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            continue;
        }
        /* One more each time, until it opens. */
        int code = -1;
        if (!open_or_skip(&run, i, 4))
            _exit(0);
        run_close(&run);
        for (few.rlim_cur = 3; code && few.rlim_cur < few.rlim_max; few.rlim_cur++) {
            fail_clear();
            if (setrlimit(RLIMIT_NOFILE, &few))
                _exit(0);
            code = run_open(&run, readers[i], 4, PATIENCE_NS);
            run_close(&run);
            if (code > 0 || (code && !*fail_reason()))
                _exit(2);
        }
        few.rlim_cur = 70;
        if (setrlimit(RLIMIT_NOFILE, &few) || !open_or_skip(&run, i, 4))
            _exit(0);
        for (uint32_t k = 0; k < 100; k++) {
            uint32_t shard = k % (SET_SHARDS - 1);
            struct read_request *request = run_request(&run, 0, shard, 0, set_sizes[shard] / 16);
            if (run_read(&run, request) < (int)request->needed ||
                memcmp(request->data, set.content[shard], request->needed) != 0)
                _exit(1);
            reader_release(&run.reader, request);
        }
        run_close(&run);
        _exit(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_changed_since_the_index_is_refused),
        cmocka_unit_test(a_file_cut_short_while_open),
        cmocka_unit_test(a_file_replaced_while_open_is_noticed),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(closing_waits_for_what_is_in_flight),
        cmocka_unit_test(few_descriptors_are_enough),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
