/* SPDX-License-Identifier: Apache-2.0
 * Every reader gives the bytes of the file, whatever the extent, depth and options. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/random.h"
#include "readers/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SHARDS = 5, LARGEST = 256 * 1024, REQUESTS = 400 };

/* The last one is empty; none ends on a page. */
static const uint32_t sizes[SHARDS] = {1000003, 4097, 511, 300001, 0};

static struct {
    char folder[64];
    struct catalog *catalog;
    uint8_t *content[SHARDS];
} set;

static char *shard_path(uint32_t shard)
{
    return file_format_path("%s/%u", set.folder, shard);
}

static void write_shard(uint32_t shard)
{
    struct random random = random_start(shard);
    char *path = shard_path(shard);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);

    assert_true(fd >= 0);
    for (uint32_t i = 0; i < sizes[shard]; i++)
        set.content[shard][i] = (uint8_t)random_next(&random);
    assert_int_equal(file_write_at(fd, set.content[shard], sizes[shard], 0, path), 0);
    close(fd);
    free(path);
}

static void index_set(void)
{
    catalog_destroy(set.catalog);
    set.catalog = catalog_create(set.folder, "test");
    for (uint32_t i = 0; i < SHARDS; i++) {
        char *path = shard_path(i);
        assert_int_equal(catalog_begin_shard(set.catalog, path, -1, 0), 0);
        if (sizes[i])
            assert_int_equal(catalog_add(set.catalog, 0, sizes[i]), 0);
        free(path);
    }
    assert_int_equal(catalog_seal(set.catalog), 0);
}

static int set_up(void **unused)
{
    (void)unused;
    /* Beside the test, not on /tmp: that may be a tmpfs, which knows no O_DIRECT. */
    snprintf(set.folder, sizeof set.folder, "test_readers.XXXXXX");
    assert_non_null(mkdtemp(set.folder));
    for (uint32_t i = 0; i < SHARDS; i++) {
        set.content[i] = malloc(sizes[i] + 1);
        write_shard(i);
    }
    index_set();
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i < SHARDS; i++) {
        char *path = shard_path(i);
        unlink(path);
        free(path);
        free(set.content[i]);
    }
    rmdir(set.folder);
    catalog_destroy(set.catalog);
    return 0;
}

struct run {
    struct reader reader;
    struct plugin_choice choice;
    struct iovec region;
    struct read_request *requests;
    uint32_t depth;
};

/* 0, or what reader_open() said. */
static int run_open(struct run *run, const char *name, uint32_t depth, uint64_t timeout_ns)
{
    *run = (struct run){.depth = depth};
    assert_int_equal(plugin_choose("reader", reader_registry, name, &run->choice), 0);
    run->region.iov_len = (size_t)depth * LARGEST;
    run->region.iov_base =
        mmap(NULL, run->region.iov_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(run->region.iov_base, MAP_FAILED);
    run->requests = calloc(depth, sizeof *run->requests);
    struct reader_site site = {
        .catalog = set.catalog,
        .regions = &run->region,
        .region_count = 1,
        .depth = depth,
        .bytes_max = LARGEST,
        .timeout_ns = timeout_ns,
    };
    return reader_open(&run->reader, &run->choice, &site);
}

static void run_close(struct run *run)
{
    reader_close(&run->reader);
    plugin_release(&run->choice);
    if (!run->reader.held) {
        munmap(run->region.iov_base, run->region.iov_len);
        free(run->requests);
    }
}

/* An extent anywhere in a shard, often at its end; widened to the alignment. */
static void draw_request(struct run *run, struct read_request *request, struct random *random)
{
    uint32_t alignment = run->reader.traits.alignment;
    uint32_t shard = (uint32_t)random_below(random, SHARDS - 1);
    uint32_t size = sizes[shard];
    uint64_t most = random_below(random, 4) ? 3000 : LARGEST - 2 * (uint64_t)alignment;
    uint64_t begin = random_below(random, size);
    uint64_t bytes = 1 + random_below(random, most);

    if (bytes > size - begin || random_below(random, 8) == 0)
        bytes = size - begin < most ? size - begin : most;
    uint64_t first = begin / alignment * alignment;
    uint64_t last = (begin + bytes + alignment - 1) / alignment * alignment;
    size_t index = (size_t)(request - run->requests);
    *request = (struct read_request){
        .shard = shard,
        .offset = first,
        .bytes = (uint32_t)(last - first),
        .needed = (uint32_t)(begin + bytes - first),
        .buffer = run->reader.traits.lends ? NULL : (char *)run->region.iov_base + index * LARGEST,
    };
}

static void check_request(const struct read_request *request)
{
    assert_true(request->result >= (int)request->needed);
    assert_true(request->offset + (uint64_t)request->result <= sizes[request->shard]);
    assert_memory_equal(request->data, set.content[request->shard] + request->offset,
                        (size_t)request->result);
}

static void read_many(struct run *run, uint32_t total)
{
    struct random random = random_start(run->depth);
    struct read_request *done[16], **idle = calloc(run->depth, sizeof *idle);
    uint32_t idle_count = run->depth, submitted = 0, finished = 0;

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
        int count = reader_reap(&run->reader, done, 16, UINT64_C(5000000000));
        assert_true(count > 0);
        for (int i = 0; i < count; i++) {
            check_request(done[i]);
            reader_release(&run->reader, done[i]);
            idle[idle_count++] = done[i];
        }
        finished += (uint32_t)count;
    }
    assert_int_equal(run->reader.in_flight, 0);
    assert_int_equal(run->reader.figures.requests, total);
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

static void every_reader_gives_the_bytes_of_the_file(void **unused)
{
    static const uint32_t depths[] = {1, 3, 32, 256};

    (void)unused;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
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
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reader_gives_the_bytes_of_the_file),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
