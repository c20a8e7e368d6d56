/* SPDX-License-Identifier: Apache-2.0
 * Every reader returns the bytes of the file, for any extent, depth and options. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"
#include "tests/unit/reader_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REQUESTS = 400 };

/* Draw an extent anywhere in a shard, often at its end. */
static void draw_request(struct run *run, struct read_request *request, struct random *random)
{
    uint32_t shard = (uint32_t)random_below(random, SET_SHARDS - 1);
    uint64_t most = random_below(random, 4) ? 3000 : SET_LARGEST - 2 * 4096;
    uint64_t begin = random_below(random, set_sizes[shard]);
    uint64_t left = set_sizes[shard] - begin;
    uint64_t bytes = 1 + random_below(random, most);

    if (bytes > left || random_below(random, 8) == 0)
        bytes = left < most ? left : most;
    run_request(run, (uint32_t)(request - run->requests), shard, begin, bytes);
}

static void check_request(const struct read_request *request)
{
    assert_true(request->result >= (int)request->needed);
    assert_true(request->offset + (uint64_t)request->result <= set_sizes[request->shard]);
    assert_memory_equal(request->data, set.content[request->shard] + request->offset,
                        (size_t)request->result);
}

static void read_many(struct run *run, uint32_t total)
{
    struct random random = random_start(run->depth);
    struct read_request *done[16], **idle = calloc(run->depth, sizeof *idle);
    uint32_t idle_count = run->depth, submitted = 0, finished = 0;
    const uint64_t start_ns = clock_now_ns();
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < run->depth; i++)
        idle[i] = &run->requests[i];
    while (finished < total) {
        while (idle_count && submitted < total) {
            struct read_request *request = idle[idle_count - 1];
            draw_request(run, request, &random);
            int code = reader_submit(&run->reader, request);
            if (code == -EAGAIN)
                break;
            assert_int_equal(code, 0);
            idle_count--;
            submitted++;
        }
        int count = reader_reap(&run->reader, done, 16, PATIENCE_NS);
        assert_true(count > 0);
        for (int i = 0; i < count; i++) {
            check_request(done[i]);
            bytes += (uint64_t)done[i]->result;
            reader_release(&run->reader, done[i]);
            idle[idle_count++] = done[i];
        }
        finished += (uint32_t)count;
    }
    assert_int_equal(run->reader.in_flight, 0);
    assert_int_equal(run->reader.figures.requests, total);
    assert_int_equal(run->reader.figures.bytes, bytes);
    assert_int_equal(run->reader.figures.latency_ns.count, total);
    /* At most `depth` reads are in flight; each latency is within the total time. */
    assert_true(run->reader.figures.latency_ns.minimum > 0);
    assert_true(run->reader.figures.latency_ns.maximum <= clock_now_ns() - start_ns);
    assert_true(run->reader.figures.latency_ns.sum <= run->depth * (clock_now_ns() - start_ns));
    free(idle);
}

static const char *const variants[] = {
    "uring",
    "uring:direct=yes",
    "uring:registered=no,readahead=yes",
    "uring:sqpoll=yes",
    "uring:direct=yes,iopoll=yes",
    "uring:dontcache=yes",
    "pread",
    "pread:threads=2,readahead=yes",
    "pread:direct=yes",
    "mmap",
    "mmap:readahead=yes",
};

static bool quick; /* a single depth suffices */

static void every_reader_gives_the_bytes_of_the_file(void **unused)
{
    static const uint32_t depths[] = {3, 1, 32, 256};

    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(variants[v], ":"), variants[v]);
        if (!plugin_find(reader_registry, name)) {
            print_message("%s: not built\n", variants[v]);
            continue;
        }
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d += quick ? 4 : 1) {
            struct run run;
            int code = run_open(&run, variants[v], depths[d], 0);
            print_message("%s: %s%s%s\n", variants[v], run.reader.traits.engine,
                          *run.reader.traits.notice ? "; " : "", run.reader.traits.notice);
            if (code == 0)
                read_many(&run, REQUESTS);
            else
                print_message("%s: skipped: %s\n", variants[v], fail_reason());
            run_close(&run);
            assert_true(code == 0 || code == -EOPNOTSUPP);
            FILE *maps = fopen("/proc/self/maps", "re");
            for (char line[512]; maps && fgets(line, sizeof line, maps);)
                assert_null(strstr(line, set.folder)); /* no longer mapped */
            fclose(maps);
        }
    }
}

/* A latency begins when the read is passed on, and with the reap if that is what passes it on. */
static void reads_begin_where_their_reader_begins_them(void **unused)
{
    static const char *const readers[] = {"uring", "pread"};

    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct run run;
        struct read_request *requests[2], *done[2];
        uint64_t after_ns[2];
        uint32_t finished = 0;
        if (!plugin_find(reader_registry, readers[i]))
            continue;
        assert_int_equal(run_open(&run, readers[i], 2, 0), 0);
        for (uint32_t k = 0; k < 2; k++) {
            requests[k] = run_request(&run, k, 0, 100, 1000);
            assert_int_equal(reader_submit(&run.reader, requests[k]), 0);
            after_ns[k] = clock_now_ns();
        }
        while (finished < 2) {
            int count = reader_reap(&run.reader, done, 2, PATIENCE_NS);
            assert_true(count > 0);
            finished += (uint32_t)count;
        }
        const uint64_t first_ns = requests[0]->issue_ns, second_ns = requests[1]->issue_ns;
        if (run.reader.traits.batches)
            assert_true(first_ns >= after_ns[1] && second_ns == first_ns);
        else
            assert_true(first_ns <= after_ns[0] && second_ns >= after_ns[0] &&
                        second_ns <= after_ns[1]);
        run_close(&run);
    }
}

/* The bytes go to the parts, in their order, and nowhere else. */
static void a_scattered_read_fills_its_parts(void **unused)
{
    static const char *const scattering[] = {"uring", "uring:registered=no", "pread"};

    for (size_t i = 0; i < sizeof scattering / sizeof *scattering; i++) {
        struct run run;
        uint8_t bytes[9000] = {0};
        struct iovec parts[] = {{.iov_base = bytes + 5000, .iov_len = 3000},
                                {.iov_base = bytes + 8900, .iov_len = 1},
                                {.iov_base = bytes, .iov_len = 4999}};
        if (!plugin_find(reader_registry, strncmp(scattering[i], "uring", 5) ? "pread" : "uring"))
            continue;
        assert_int_equal(run_open(&run, scattering[i], 2, 0), 0);
        assert_true(run.reader.traits.scatters);
        struct read_request *request = run_request(&run, 0, 0, 100, 8000);
        memset(request->buffer, 0xa5, 8000);
        request->parts = parts;
        request->part_count = 3;
        assert_int_equal(run_read(&run, request), 8000);
        assert_memory_equal(bytes + 5000, set.content[0] + 100, 3000);
        assert_int_equal(bytes[8900], set.content[0][3100]);
        assert_memory_equal(bytes, set.content[0] + 3101, 4999);
        assert_int_equal(bytes[4999] | bytes[8000] | bytes[8899] | bytes[8901], 0);
        for (int k = 0; k < 8000; k++)
            assert_int_equal(((uint8_t *)request->buffer)[k], 0xa5);
        run_close(&run);
    }
}

static void read_once(const char *reader)
{
    struct run run;
    int code = run_open(&run, reader, 2, 0);

    if (code)
        print_message("%s: skipped: %s\n", reader, fail_reason());
    else
        assert_true(run_read(&run, run_request(&run, 0, 0, 100, 1000)) >= 1000);
    run_close(&run);
    assert_true(code == 0 || code == -EOPNOTSUPP);
}

/* Long before the file was written, so that the next read would write it (relatime). */
static void reads_leave_the_time_of_access(void **unused)
{
    const struct timespec long_ago[] = {{.tv_sec = 1000000000}, {.tv_nsec = UTIME_OMIT}};
    char *path = set_path(0);
    struct stat now;

    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(variants[v], ":"), variants[v]);
        if (!plugin_find(reader_registry, name))
            continue;
        assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
        read_once(variants[v]);
        assert_int_equal(stat(path, &now), 0);
        if (now.st_atim.tv_sec != long_ago[0].tv_sec)
            fail_msg("%s wrote it", variants[v]);
    }
    free(path);
}

static void a_missing_file_is_named(void **unused)
{
    char *path = set_path(0), aside[100];

    snprintf(aside, sizeof aside, "%s/aside", set.folder);
    assert_int_equal(rename(path, aside), 0);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        char name[16];
        struct run run;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(variants[v], ":"), variants[v]);
        if (!plugin_find(reader_registry, name))
            continue;
        int code = run_open(&run, variants[v], 2, 0);
        assert_true(code || !strstr(variants[v], "direct=yes")); /* asks it for its alignment */
        if (code == 0)
            code = run_read(&run, run_request(&run, 0, 0, 100, 1000));
        if (code != -EOPNOTSUPP) {
            assert_refused(code, -ENOENT, path);
        }
        run_close(&run);
    }
    assert_int_equal(rename(aside, path), 0);
    free(path);
}

/* Only the owner may ask for that. */
static void files_of_others_are_read(void **unused)
{
    enum { NOBODY = 65534 };
    char *path = set_path(0);

    if (geteuid() != 0) {
        free(path);
        skip(); /* only root can become another user */
    }
    assert_int_equal(chmod(set.folder, 0755), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    read_once("pread");
    read_once("mmap");
    if (plugin_find(reader_registry, "uring"))
        read_once("uring");
    assert_int_equal(seteuid(0), 0);
    free(path);
}

/* test_readers [quick] */
int main(int argc, char **argv)
{
    quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reader_gives_the_bytes_of_the_file),
        cmocka_unit_test(reads_begin_where_their_reader_begins_them),
        cmocka_unit_test(a_scattered_read_fills_its_parts),
        cmocka_unit_test(reads_leave_the_time_of_access),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(files_of_others_are_read),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
