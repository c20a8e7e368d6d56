/* SPDX-License-Identifier: Apache-2.0
 * Readers on a storage that fails: errors, short reads, late answers, none at all. Needs root and
 * FUSE; skipped without. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "tests/unit/fault_fs.h"
#include "tests/unit/reader_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 3, FILE_BYTES = 4000000, DEPTH = 16, KIB = 1024 };
static const uint64_t TIMEOUT_NS = 200000000;

static struct fault_fs *fs;
static char folder[64];

static const char *const readers[] = {"uring", "uring:direct=yes", "uring:registered=no",
                                      "pread", "pread:direct=yes", "mmap"};
/* The last one reads through the page cache, page by page: only its errors can be distinguished. */
enum { READERS = sizeof readers / sizeof *readers, UNCACHED = READERS - 1 };

static bool open_reader(struct run *run, const char *reader, uint64_t timeout_ns)
{
    char name[16];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(reader, ":"), reader);
    if (!plugin_find(reader_registry, name))
        return false;
    assert_int_equal(run_open(run, reader, DEPTH, timeout_ns), 0);
    return true;
}

/* The first read opens the files: through the page cache for a reader that maps them. */
static void set_faults(const struct run *run, struct fault_knobs knobs)
{
    knobs.cached = run->reader.traits.zero_copy;
    fault_fs_set(fs, &knobs);
}

static void check_bytes(const struct read_request *request)
{
    const uint8_t *bytes = request->data;

    assert_true(request->result >= (int)request->needed);
    for (uint32_t i = 0; i < (uint32_t)request->result; i += 97)
        assert_int_equal(bytes[i], fault_fs_byte(request->shard, request->offset + i));
}

/* Read total requests, DEPTH in flight. Returns the number that failed. */
static uint32_t read_many(struct run *run, uint32_t total)
{
    struct read_request *done[DEPTH];
    uint32_t submitted = 0, finished = 0, failed = 0;

    for (; submitted < DEPTH; submitted++)
        assert_int_equal(reader_submit(&run->reader, run_request(run, submitted, submitted % FILES,
                                                                 submitted * 7919, 200 * KIB)),
                         0);
    while (finished < total) {
        int count = reader_reap(&run->reader, done, DEPTH, PATIENCE_NS);
        assert_true(count > 0);
        finished += (uint32_t)count;
        for (int i = 0; i < count; i++) {
            if (done[i]->result < 0)
                failed++;
            else
                check_bytes(done[i]);
            reader_release(&run->reader, done[i]);
            if (submitted == total)
                continue;
            uint32_t index = (uint32_t)(done[i] - run->requests);
            uint64_t begin = submitted * UINT64_C(104729) % (FILE_BYTES - 250 * KIB);
            assert_int_equal(reader_submit(&run->reader, run_request(run, index, submitted % FILES,
                                                                     begin, 200 * KIB)),
                             0);
            submitted++;
        }
    }
    return failed;
}

static void an_error_names_file_and_offset(void **unused)
{
    struct fault_knobs knobs = {.eio_begin = 1000 * KIB, .eio_end = 1001 * KIB};
    struct run run;

    for (size_t i = 0; i < READERS; i++) {
        if (!open_reader(&run, readers[i], PATIENCE_NS))
            continue;
        set_faults(&run, knobs);
        struct read_request *request = run_request(&run, 0, 1, 900 * KIB, 200 * KIB);
        assert_refused(run_read(&run, request), -EIO, folder);
        assert_reason("offset 921600");
        request = run_request(&run, 0, 1, 1100 * KIB, 200 * KIB);
        assert_true(run_read(&run, request) > 0);
        check_bytes(request);
        reader_release(&run.reader, request);
        assert_int_equal(run.reader.figures.errors, 1);
        run_close(&run);
    }
}

/* There, threads read instead, unless the user requested io_uring. */
static void a_reader_that_was_chosen_does_not_fall_back(void **unused)
{
    struct run run;

    if (!open_reader(&run, "uring", PATIENCE_NS))
        skip();
    assert_non_null(strstr(run.reader.traits.engine, "no io_uring"));
    assert_non_null(strstr(run.reader.traits.notice, "FUSE"));
    struct reader_config site = run.reader.config;
    reader_close(&run.reader);
    site.falls_back = false;
    assert_refused(reader_open(&run.reader, &run.choice, &site), -ENOTSUP, "FUSE");
    run_close(&run);
}

static void some_errors_among_many_reads(void **unused)
{
    struct fault_knobs knobs = {.eio_every = 10};
    struct run run;

    for (size_t i = 0; i < UNCACHED; i++) {
        if (!open_reader(&run, readers[i], PATIENCE_NS))
            continue;
        set_faults(&run, knobs);
        uint32_t failed = read_many(&run, 200);
        assert_in_range(failed, 1, 199);
        assert_int_equal(run.reader.figures.errors, failed);
        run_close(&run);
    }
}

static void short_reads_are_resumed(void **unused)
{
    struct fault_knobs knobs = {.short_every = 3};
    struct run run;

    for (size_t i = 0; i < UNCACHED; i++) {
        if (!open_reader(&run, readers[i], PATIENCE_NS))
            continue;
        set_faults(&run, knobs);
        assert_int_equal(read_many(&run, 200), 0);
        assert_true(run.reader.figures.short_reads > 10);
        run_close(&run);
    }
}

static void late_answers_arrive(void **unused)
{
    struct fault_knobs knobs = {.delay_ns = 20000000};
    struct run run;

    for (size_t i = 0; i < UNCACHED; i++) {
        if (!open_reader(&run, readers[i], PATIENCE_NS))
            continue;
        set_faults(&run, knobs);
        assert_int_equal(read_many(&run, 2 * DEPTH), 0);
        assert_true(run.reader.figures.latency_ns.minimum >= knobs.delay_ns);
        run_close(&run);
    }
}

/* A read that never completes is abandoned in time, with its memory; the others continue, and close
 * does not wait for it. Returns false if this machine was too slow to complete the others
 * in time. */
static bool give_up(const char *reader, bool answers_at_last, uint64_t timeout_ns)
{
    struct fault_knobs stuck = {.stuck = true}, none = {0};
    struct read_request *done;
    struct run run;
    bool in_time = true;

    if (!open_reader(&run, reader, timeout_ns))
        return true;
    set_faults(&run, stuck);
    struct read_request *request = run_request(&run, 0, 1, 0, 100 * KIB);
    assert_int_equal(run_read(&run, request), -ETIMEDOUT);
    assert_true(request->held);
    assert_reason("no answer");
    assert_int_equal(reader_submit(&run.reader, run_request(&run, 1, 1, 0, 100 * KIB)), 0);
    if (answers_at_last) {
        set_faults(&run, none);
        assert_int_equal(reader_reap(&run.reader, &done, 1, PATIENCE_NS), 1);
        in_time = done->result != -ETIMEDOUT;
        if (in_time)
            check_bytes(done);
        reader_release(&run.reader, done);
    }
    run_close(&run);
    assert_int_equal(run.reader.held, answers_at_last && in_time ? 1 : 2);
    set_faults(&run, none);
    return in_time;
}

static void no_answer_is_no_hang(void **unused)
{
    static const char *const names[] = {"uring:fuse=yes", "pread", "mmap"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t timeout_ns = TIMEOUT_NS;
        while (!give_up(names[i], true, timeout_ns)) {
            timeout_ns *= 4;
            assert_true(timeout_ns < PATIENCE_NS);
        }
        give_up(names[i], false, TIMEOUT_NS);
    }
    fault_fs_await_threads();
}

/* io_uring can cancel a read if the file system allows it; its memory is then free again. */
static bool take_back(uint64_t timeout_ns)
{
    struct fault_knobs stuck = {.stuck = true, .obeys_interrupts = true};
    struct run run;

    if (!open_reader(&run, "uring:fuse=yes", timeout_ns))
        return true;
    if (!strstr(run.reader.traits.engine, "io_uring,")) {
        run_close(&run);
        return true;
    }
    set_faults(&run, stuck);
    struct read_request *request = run_request(&run, 0, 1, 0, 100 * KIB);
    assert_int_equal(run_read(&run, request), -ETIMEDOUT);
    const bool is_free = !request->held;
    run_close(&run);
    assert_int_equal(run.reader.held, is_free ? 0 : 1);
    return is_free;
}

static void a_late_read_is_cancelled(void **unused)
{
    uint64_t timeout_ns = 8 * TIMEOUT_NS;

    /* The kernel has an eighth of the timeout to cancel the read; more on a slow machine. */
    while (!take_back(timeout_ns)) {
        timeout_ns *= 4;
        assert_true(timeout_ns < PATIENCE_NS);
    }
}

static int mount_set(bool is_async)
{
    char path[128];

    if (!mkdtemp(strcpy(folder, "test_storage_faults.XXXXXX")))
        return -1;
    if (fault_fs_mount(&fs, folder, FILES, FILE_BYTES, NULL, is_async))
        return -1;
    set.catalog = catalog_create(folder, "test");
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%d", folder, i);
        assert_int_equal(catalog_begin_shard(set.catalog, path, NULL, 0), 0);
        assert_int_equal(catalog_add(set.catalog, 0, FILE_BYTES), 0);
    }
    return catalog_seal(set.catalog);
}

static int mount_async(void **unused)
{
    return mount_set(true);
}

static int mount_in_threads(void **unused)
{
    return mount_set(false);
}

static int unmount_set(void **unused)
{
    catalog_destroy(set.catalog);
    fault_fs_unmount(fs);
    return rmdir(folder);
}

#define FAULT_TEST(test, mount) cmocka_unit_test_setup_teardown(test, mount, unmount_set)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(an_error_names_file_and_offset, mount_async),
        FAULT_TEST(a_reader_that_was_chosen_does_not_fall_back, mount_async),
        FAULT_TEST(some_errors_among_many_reads, mount_async),
        FAULT_TEST(short_reads_are_resumed, mount_async),
        FAULT_TEST(late_answers_arrive, mount_async),
        FAULT_TEST(no_answer_is_no_hang, mount_async),
        FAULT_TEST(a_late_read_is_cancelled, mount_in_threads),
    };

    alarm(PATIENCE_S); /* a reader that hangs */
    if (mount_set(true)) {
        printf("skipped: %s\n", fail_reason());
        rmdir(folder);
        return 77;
    }
    unmount_set(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
