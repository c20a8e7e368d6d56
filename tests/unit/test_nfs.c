/* SPDX-License-Identifier: Apache-2.0
 *
 * The nfs reader on a libnfs made here, which answers at once over a pair of sockets each: a turn
 * costs as many calls of libnfs with 64 connections as with one, a mount may change the socket
 * under the same number, a full socket is continued, a broken connection is made again. */
#include "tests/unit/allocations.h"
#include "tests/unit/nfs_stand_in.h"
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "readers/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEPTH = NFS_CALLS_MOST, BYTES = NFS_BYTES, SHARDS = 3 };

/* ---- the reader ---- */

static struct rig {
    struct catalog *catalog;
    struct plugin_choice choice;
    struct reader reader;
    struct iovec region;
    struct read_request requests[DEPTH];
} rig;

static int try_open(const char *reader)
{
    nfs_stand_in = (struct nfs_stand_in){0};
    rig.catalog = catalog_create("nfs://there/set", "test");
    for (uint32_t i = 0; i < SHARDS; i++) {
        char path[64];
        snprintf(path, sizeof path, "nfs://there/set/%u", i);
        const struct store_status status = {.kind = STORE_FILE, .bytes = NFS_FILE_BYTES};
        assert_int_equal(catalog_begin_shard(rig.catalog, path, &status, 0), 0);
        assert_int_equal(catalog_add(rig.catalog, 0, NFS_FILE_BYTES), 0);
    }
    rig.region = (struct iovec){.iov_base = calloc(DEPTH, BYTES), .iov_len = DEPTH * BYTES};
    const struct reader_config config = {.catalog = rig.catalog,
                                         .regions = &rig.region,
                                         .region_count = 1,
                                         .depth = DEPTH,
                                         .timeout_ns = PATIENCE_NS};
    assert_int_equal(plugin_choose("reader", reader_registry, reader, &rig.choice), 0);
    if (allocation_refused)
        allocation_refused += counter_get(&allocations);
    const int code = reader_open(&rig.reader, &rig.choice, &config);
    allocation_refused = 0;
    return code;
}

static void open_reader(const char *reader)
{
    if (try_open(reader))
        fail_msg("%s", fail_reason());
}

static void close_reader(void)
{
    reader_close(&rig.reader);
    plugin_release(&rig.choice);
    catalog_destroy(rig.catalog);
    free(rig.region.iov_base);
}

static void submit(uint32_t index)
{
    struct read_request *request = &rig.requests[index];

    *request = (struct read_request){.shard = index % SHARDS,
                                     .offset = (uint64_t)index * BYTES,
                                     .bytes = BYTES,
                                     .needed = BYTES,
                                     .buffer = (uint8_t *)rig.region.iov_base + index * BYTES};
    assert_int_equal(reader_submit(&rig.reader, request), 0);
}

static void reap(uint32_t count)
{
    struct read_request *done[DEPTH];
    uint64_t until_ns = clock_now_ns() + PATIENCE_NS;

    while (count > 0 && clock_now_ns() < until_ns) {
        int got = reader_reap(&rig.reader, done, DEPTH, PATIENCE_NS);
        assert_true(got >= 0);
        for (int i = 0; i < got; i++) {
            assert_int_equal(done[i]->result, BYTES);
            assert_int_equal(*(uint8_t *)done[i]->data, (uint8_t)(done[i] - rig.requests));
        }
        count -= (uint32_t)got;
    }
    assert_int_equal(count, 0);
}

/* ---- tests ---- */

/* Return libnfs's calls for 100 single reads, one after the other. */
static uint64_t calls_of(const char *reader)
{
    open_reader(reader);
    for (uint32_t i = 0; i < DEPTH; i++) {
        submit(i);
        reap(1);
    }
    nfs_stand_in.polled = 0;
    for (uint32_t i = 0; i < 100; i++) {
        submit(i % DEPTH);
        reap(1);
    }
    uint64_t calls = nfs_stand_in.polled;
    close_reader();
    return calls;
}

static void test_idle_connections_cost_nothing(void **unused)
{
    uint64_t one = calls_of("nfs:1,version=3");
    assert_int_equal(calls_of("nfs:64,version=3"), one);
    assert_in_range(one, 100, 600);
}

static void test_reads_spread(void **unused)
{
    open_reader("nfs:64,version=3");
    for (uint32_t i = 0; i < DEPTH; i++)
        submit(i);
    reap(DEPTH);
    assert_int_equal(nfs_stand_in.readers, 64);
    close_reader();
}

static void test_full_socket(void **unused)
{
    open_reader("nfs:1,version=3");
    nfs_stand_in.sends_most = 1;
    for (uint32_t i = 0; i < DEPTH / 2; i++)
        submit(i);
    reap(DEPTH / 2);
    close_reader();
}

static void test_broken_connection(void **unused)
{
    open_reader("nfs:2,version=3");
    uint32_t contexts = nfs_stand_in.contexts;
    for (uint32_t i = 0; i < SHARDS * 2; i++)
        submit(i);
    reap(SHARDS * 2);
    for (uint32_t i = 0; i < DEPTH / 2; i++)
        submit(i);
    nfs_stand_in.cut = nfs_stand_in.latest;
    reap(DEPTH / 2);
    assert_null(nfs_stand_in.cut);
    assert_int_equal(nfs_stand_in.contexts, contexts);
    close_reader();
}

/* Whatever has no memory when the reader is opened, all that it had is freed. */
static void test_open_without_memory(void **unused)
{
    if (!allocations_counted)
        skip();
    open_reader("nfs:nconnect=2");
    close_reader();
    for (uint64_t refused = 1;; refused++) {
        const uint64_t before = counter_get(&allocations) - counter_get(&releases);
        allocation_refused = refused;
        const int code = try_open("nfs:nconnect=2");
        close_reader();
        if (code == 0) {
            assert_true(refused > 5 + 2 * 3); /* the reader's own, and three of each connection */
            return;
        }
        assert_int_equal(code, -ENOMEM);
        /* The refused one is counted, too. */
        assert_int_equal(counter_get(&allocations) - counter_get(&releases), before + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_connections_cost_nothing),
        cmocka_unit_test(test_reads_spread),
        cmocka_unit_test(test_full_socket),
        cmocka_unit_test(test_broken_connection),
        cmocka_unit_test(test_open_without_memory),
    };

    alarm(PATIENCE_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
