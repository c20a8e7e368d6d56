/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/random.h"
#include "tests/unit/reader_set.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const uint32_t set_sizes[SET_SHARDS] = {1000003, 4097, 511, 300001, 0};

struct reader_set set;

char *set_path(uint32_t shard)
{
    return file_format_path("%s/%u", set.folder, shard);
}

void set_write(uint32_t shard)
{
    struct random random = random_start(shard);
    char *path = set_path(shard);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);

    assert_true(fd >= 0);
    for (uint32_t i = 0; i < set_sizes[shard]; i++)
        set.content[shard][i] = (uint8_t)random_next(&random);
    assert_int_equal(file_write_at(fd, set.content[shard], set_sizes[shard], 0, path), 0);
    close(fd);
    free(path);
}

void set_index(void)
{
    catalog_destroy(set.catalog);
    set.catalog = catalog_create(set.folder, "test");
    for (uint32_t i = 0; i < SET_SHARDS; i++) {
        char *path = set_path(i);
        assert_int_equal(catalog_begin_shard(set.catalog, path, NULL, 0), 0);
        if (set_sizes[i])
            assert_int_equal(catalog_add(set.catalog, 0, set_sizes[i]), 0);
        free(path);
    }
    assert_int_equal(catalog_seal(set.catalog), 0);
}

int set_up(void **unused)
{
    /* Next to the test, not in /tmp, which may be a tmpfs without O_DIRECT. */
    snprintf(set.folder, sizeof set.folder, "test_reader_set.XXXXXX");
    assert_non_null(mkdtemp(set.folder));
    for (uint32_t i = 0; i < SET_SHARDS; i++) {
        set.content[i] = malloc(set_sizes[i] + 1);
        set_write(i);
    }
    set_index();
    return 0;
}

int tear_down(void **unused)
{
    for (uint32_t i = 0; i < SET_SHARDS; i++) {
        char *path = set_path(i);
        unlink(path);
        free(path);
        free(set.content[i]);
    }
    rmdir(set.folder);
    catalog_destroy(set.catalog);
    return 0;
}

static size_t parts_bytes(const struct run *run)
{
    return run->depth * SET_PARTS * sizeof(struct iovec);
}

bool set_in_order;

int run_open(struct run *run, const char *reader, uint32_t depth, uint64_t timeout_ns)
{
    *run = (struct run){.depth = depth};
    assert_int_equal(plugin_choose("reader", reader_registry, reader, &run->choice), 0);
    run->region.iov_len = (size_t)depth * SET_LARGEST;
    run->region.iov_base = mmap(NULL, run->region.iov_len + parts_bytes(run),
                                PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(run->region.iov_base, MAP_FAILED);
    run->parts = (struct iovec *)(void *)((char *)run->region.iov_base + run->region.iov_len);
    run->requests = calloc(depth, sizeof *run->requests);
    struct reader_config site = {
        .catalog = set.catalog,
        .regions = &run->region,
        .region_count = 1,
        .depth = depth,
        .timeout_ns = timeout_ns,
        .in_order = set_in_order,
        .falls_back = true,
    };
    return reader_open(&run->reader, &run->choice, &site);
}

void run_close(struct run *run)
{
    static void *held[64]; /* reachable for a leak checker */
    static unsigned held_count;

    reader_close(&run->reader);
    plugin_release(&run->choice);
    if (run->reader.held) {
        assert_true(held_count < sizeof held / sizeof *held);
        held[held_count++] = run->requests;
        return;
    }
    munmap(run->region.iov_base, run->region.iov_len + parts_bytes(run));
    free(run->requests);
}

/* Split its buffer into parts of different sizes. */
static void scatter(struct read_request *request, struct iovec *parts)
{
    const size_t ends[SET_PARTS] = {request->bytes / 7, request->bytes / 2, request->bytes};
    size_t from = 0;

    for (int i = 0; i < SET_PARTS; from = ends[i++])
        parts[i] =
            (struct iovec){.iov_base = (char *)request->buffer + from, .iov_len = ends[i] - from};
    request->parts = parts;
    request->part_count = SET_PARTS;
}

struct read_request *run_request(struct run *run, uint32_t index, uint32_t shard, uint64_t begin,
                                 uint64_t bytes)
{
    uint32_t alignment = run->reader.traits.alignment;
    uint64_t first = bytes_align_down(begin, alignment);
    uint64_t last = bytes_align_up(begin + bytes, alignment);
    struct read_request *request = &run->requests[index];

    *request = (struct read_request){
        .shard = shard,
        .offset = first,
        .bytes = (uint32_t)(last - first),
        .needed = (uint32_t)(begin + bytes - first),
        .buffer = run->reader.traits.zero_copy
                      ? NULL
                      : (char *)run->region.iov_base + (size_t)index * SET_LARGEST,
    };
    if (run->reader.traits.scatters && index % 2 == 1)
        scatter(request, run->parts + (size_t)index * SET_PARTS);
    return request;
}

int run_read(struct run *run, struct read_request *request)
{
    struct read_request *done;

    assert_int_equal(reader_submit(&run->reader, request), 0);
    assert_int_equal(reader_reap(&run->reader, &done, 1, PATIENCE_NS), 1);
    assert_ptr_equal(done, request);
    return request->result;
}
