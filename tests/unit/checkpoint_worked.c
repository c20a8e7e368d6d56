/* SPDX-License-Identifier: Apache-2.0
 * The figures of a checkpoint of three ranks on two nodes, worked by hand. */
#include "tests/unit/wire.h"

#include "cmd/checkpoint/shared.h"

#include <string.h>

#define S(seconds) ((uint64_t)((double)(seconds)*1e9))

/* ---- three ranks ---- */

/* Collect as each rank; the row that every rank then has is that of the last. */
static void collect(const struct rank_figures figures[RANKS], struct checkpoint_result *result,
                    struct checkpoint_row *row)
{
    wire.is_kept = false;
    for (uint32_t i = 0; i < 2 * RANKS; i++) {
        const uint32_t rank = i % RANKS;
        struct ranks ranks = as_rank(rank);
        struct rank_figures mine = figures[rank];
        struct checkpoint_shared shared = {.result = result,
                                           .ranks = &ranks,
                                           .buffers = {.ranks = 1},
                                           .first_rank = rank,
                                           .figures = &mine};
        /* Both ranks of the first node see its one disk: 900 bytes, not 1,800. */
        const struct storage_bytes written = {.process_known = true,
                                              .process_write_bytes = UINT64_C(10) << rank,
                                              .device_known = true,
                                              .device_write_bytes = rank == 2 ? 700 : 900};
        *row = (struct checkpoint_row){0};
        memset(result->each, 0, RANKS * sizeof *result->each);
        assert_int_equal(shared_collect(&shared, RANKS, &written, row), 0);
        wire.is_kept = i + 1 >= RANKS;
    }
}

static void three_ranks_on_two_nodes(void **unused)
{
    struct checkpoint_rank each[RANKS];
    struct checkpoint_result result = {.each = each, .ranks = RANKS};
    struct checkpoint_row row;
    struct rank_figures figures[RANKS] = {
        {.line = {0, .bytes = 1000, .synced_bytes = 1000, .wall_ns = S(2), .sync_ns = S(0.5)}},
        {.line = {1, .bytes = 3000, .synced_bytes = 3000, .wall_ns = S(5), .sync_ns = S(1.5)}},
        {.line = {2, .bytes = 2000, .synced_bytes = 1500, .wall_ns = S(3), .sync_ns = S(0.25)}}};

    (void)unused;
    for (uint32_t i = 0; i < RANKS; i++) /* of 1, 2 and 3 writes */
        histogram_add_many(&figures[i].latency_ns, 1000, i + 1);
    collect(figures, &result, &row);
    assert_int_equal(row.bytes, 6000);        /* 1000 + 3000 + 2000 */
    assert_int_equal(row.synced_bytes, 5500); /* 1000 + 3000 + 1500 */
    assert_int_equal(row.wall_ns, S(5));
    assert_int_equal(row.slowest, 1);
    assert_int_equal(row.median_ns, S(3));
    assert_int_equal(row.fastest_ns, S(2));
    assert_int_equal(row.sync_ns, S(1.5));
    assert_int_equal(row.latency_ns.count, 6);
    assert_equal(row.process_bytes, 70);  /* 10 + 20 + 40 */
    assert_equal(row.device_bytes, 1600); /* 900 + 700 */
    assert_int_equal(checkpoint_durability(&row), CHECKPOINT_NOT_DURABLE);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(each[i].written, figures[i].line.bytes);
        assert_int_equal(each[i].write_ns, figures[i].line.wall_ns);
        assert_int_equal(each[i].read + each[i].read_ns, 0);
        assert_string_equal(each[i].host, "b"); /* without peers all are this rank's */
    }
    result_destroy(&result.evidence);
}

/* ---- durable ---- */

static void durable_takes_a_sync_and_the_devices(void **unused)
{
    struct checkpoint_row row = {.bytes = 1000, .synced_bytes = 999, .device_bytes = 5000};

    (void)unused;
    assert_int_equal(checkpoint_durability(&row), CHECKPOINT_NOT_DURABLE);
    row.synced_bytes = 1000;
    assert_int_equal(checkpoint_durability(&row), CHECKPOINT_DURABLE);
    row.device_bytes = 1000;
    assert_int_equal(checkpoint_durability(&row), CHECKPOINT_DURABLE);
    row.device_bytes = 999;
    assert_int_equal(checkpoint_durability(&row), CHECKPOINT_UNVERIFIED);
    row.device_bytes = NAN;
    assert_int_equal(checkpoint_durability(&row), CHECKPOINT_UNVERIFIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_ranks_on_two_nodes),
        cmocka_unit_test(durable_takes_a_sync_and_the_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
