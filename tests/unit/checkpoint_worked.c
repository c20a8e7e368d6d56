/* SPDX-License-Identifier: Apache-2.0
 * The figures of `iobench checkpoint`, worked by hand: of three ranks on two nodes, of two
 * checkpoints, of one and of five, as printed and as JSON. */
#include "tests/unit/wire.h"
#include "tests/unit/worked.h"

#include "cmd/checkpoint/shared.h"
#include "cmd/checkpoint/report.h"

#include <string.h>

#define S(seconds) ((uint64_t)((double)(seconds)*1e9))
#define GIB (UINT64_C(1) << 30)

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
        {.rank = 0, .bytes = 1000, .synced_bytes = 1000, .wall_ns = S(2), .sync_ns = S(0.5)},
        {.rank = 1, .bytes = 3000, .synced_bytes = 3000, .wall_ns = S(5), .sync_ns = S(1.5)},
        {.rank = 2, .bytes = 2000, .synced_bytes = 1500, .wall_ns = S(3), .sync_ns = S(0.25)}};

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
        assert_int_equal(each[i].written, figures[i].bytes);
        assert_int_equal(each[i].write_ns, figures[i].wall_ns);
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

/* ---- the report ---- */

/* 4 GiB in `wall_s` s, the fastest rank in a quarter of that, the median rank in half. */
static struct checkpoint_row row_of(double wall_s, double durable_s, double latency_s)
{
    struct checkpoint_row row = {.number = 7,
                                 .bytes = 4 * GIB,
                                 .synced_bytes = 4 * GIB,
                                 .wall_ns = S(wall_s),
                                 .median_ns = S(wall_s / 2),
                                 .fastest_ns = S(wall_s / 4),
                                 .slowest = 2,
                                 .sync_ns = S(wall_s / 8),
                                 .durable_ns = S(durable_s),
                                 .stall_ns = S(durable_s + 1),
                                 .process_bytes = 4 * (double)GIB,
                                 .device_bytes = 5 * (double)GIB};

    histogram_add(&row.latency_ns, S(latency_s));
    return row;
}

struct made {
    struct checkpoint_job job;
    struct checkpoint_asked asked;
    struct checkpoint_result result;
    struct result_run run;
    struct result_epoch epoch;
    struct checkpoint_rank each[1];
};

static void make(struct made *made, struct checkpoint_row *writes, uint64_t write_count,
                 struct checkpoint_row *reads, uint64_t read_count)
{
    *made = (struct made){
        .job = {.path = "ck", .step_ns = S(1), .depth = 4, .chunk_bytes = 1 << 20, .sync = true},
        .asked = {.job = &made->job, .command = "x", .mtbf_ns = S(10800)},
        .epoch = {.device = {.known = true, .bytes = GIB, .method = "sectors"}},
        .run = {.epochs = &made->epoch, .epoch_count = 1},
        .each = {{.host = "a", .written = 300, .write_ns = S(2), .read = 500, .read_ns = S(4)}},
        .result = {.files = {.count = 1, .bytes = 4 * GIB, .full_bytes = 8 * GIB, .ranks = 1},
                   .ranks = 1,
                   .processes = 1,
                   .nodes = 1,
                   .writes = writes,
                   .write_count = write_count,
                   .reads = reads,
                   .read_count = read_count,
                   .each = made->each,
                   .ceiling = {1.5 * (double)GIB, 2.5 * (double)GIB},
                   .steps = 10,
                   .loop_ns = S(22),
                   .evidence = {.valid = true, .runs = &made->run, .run_count = read_count != 0}}};
}

static char *text_of_report(const struct made *made)
{
    printed_begin();
    checkpoint_report_text(&made->asked, &made->result);
    return printed_end();
}

/* Rates 4 GiB / 4 s = 1 GiB/s and 4 GiB / 2 s = 2 GiB/s: median 1.5, between 1 and 2. A whole
 * checkpoint of 8 GiB takes 8 / 1.5 s and, after its last byte, the median 4 s - 3 s: w = 6.333 s.
 * Young: sqrt(2 w 10800 s) = 369.86 s; then 1 - 369.86 / 10800 / (exp((369.86 + 6.333) / 10800) -
 * 1) = 3.39% is lost. 10 steps of 1 s took 22 s: 12 s lost, 6 s each, 54.5%. */
static void two_checkpoints(void **unused)
{
    struct checkpoint_row writes[] = {row_of(4, 5, 1), row_of(2, 3, 3)};
    struct checkpoint_row read = row_of(0.5, 0, 2);
    struct made made;

    (void)unused;
    make(&made, writes, 2, &read, 1);
    char *text = text_of_report(&made);
    assert_says(text, "checkpoint: valid, cold, 2 written, 1 read, SCALED to 1/2\n");
    assert_says(text, " Write 1.50 1.00 .. 2.00 3.00 s 1.00 s 3.00 s\n");
    assert_says(text, " Restore 8.00 8.00 .. 8.00 500 ms 2.00 s 2.00 s\n");
    assert_says(text, " Durable after 4.00 s: all files synced, the manifest written, the folder "
                      "renamed; fsync 375 ms\n");
    assert_says(text, " Training 10 steps of 1.00 s: lost 12.0 s to 2 checkpoints, 6.00 s each, "
                      "54.5% of the time\n");
    assert_says(text, " Interval 370 s by Young's formula, with one failure in 10,800 s and 6.33 s "
                      "for an unscaled checkpoint\n at this rate; 3.4% of the time");
    assert_says(text, " Bytes 8.00 GiB written, 125.0% of them by the devices beneath");
    assert_says(text,
                " Read 4.00 GiB each time, 25.0% of it left storage the first time (sectors)");
    assert_says(text, " Ceiling per rank 1.50 GiB/s to write and 2.50 GiB/s to verify");
    assert_says(text, " write 7 1.00 1.00 s 2.00 s 4.00 s 2 5.00 s 6.00 s\n");
    assert_says(text, " read 7 8.00 125 ms 250 ms 500 ms 2 - -\n");
    free(text);

    json_t *document = checkpoint_report_json(&made.asked, &made.result);
    ASSERT_FIGURES(
        document, {"write.count", 2}, {"write.bytes", 4294967296},
        {"write.bytes_per_s", 1.5 * 1073741824}, {"write.low_bytes_per_s", 1073741824},
        {"write.high_bytes_per_s", 2147483648}, {"write.wall_s", 3}, {"write.requests", 2},
        {"write.max_ms", 3000}, {"write.sync_s", 0.375}, {"write.durable_s", 4},
        {"write.stall_s", 5}, {"write.process_write_bytes", 8589934592},
        {"write.device_write_bytes", 10737418240}, {"read.count", 1},
        {"read.bytes_per_s", 8589934592}, {"read.wall_s", 0.5}, {"writes.1.wall_s", 2},
        {"writes.1.median_rank_s", 1}, {"writes.1.fastest_rank_s", 0.5},
        {"writes.1.slowest_rank", 2}, {"writes.1.sync_s", 0.25}, {"writes.1.durable_s", 3},
        {"writes.1.stall_s", 4}, {"writes.1.device_write_bytes", 5368709120},
        {"writes.1.number", 7}, {"reads.0.device_read_bytes", 1073741824},
        {"reads.0.bytes", 4294967296}, {"training.steps", 10}, {"training.loop_s", 22},
        {"training.lost_s", 12}, {"training.young_write_s", 8 / 1.5 + 1},
        {"training.young_interval_s", 369.86484017813853},
        {"training.young_lost_percent", 3.3859062605699264},
        {"ceiling_write_bytes_per_s", 1610612736}, {"ceiling_verify_bytes_per_s", 2684354560},
        {"ranks.0.written_bytes", 300}, {"ranks.0.write_s", 2}, {"ranks.0.read_bytes", 500},
        {"ranks.0.read_s", 4});
    assert_string_equal(load_text(document, "write.durability"), "durable");
    json_decref(document);
}

/* One that was not synced, on no device; nothing is read, and nothing trains. */
static void one_checkpoint(void **unused)
{
    struct checkpoint_row write = row_of(4, 6, 1);
    struct made made;

    (void)unused;
    write.synced_bytes = 0;
    write.device_bytes = NAN;
    make(&made, &write, 1, NULL, 0);
    made.job.step_ns = 0;
    char *text = text_of_report(&made);
    assert_says(text, "checkpoint: valid, 1 written, 0 read, SCALED");
    assert_says(text, " Write 1.00 1.00 .. 1.00 4.00 s 1.00 s 1.00 s\n");
    assert_says(text, " Durable not durable: files were not synced; complete after 6.00 s\n");
    assert_says(text, " Bytes 4.00 GiB written; no device beneath counts what it writes\n");
    assert_says(text, " write 7 1.00 1.00 s 2.00 s 4.00 s 2 - 7.00 s\n");
    assert_null(strstr(text, "Training"));
    free(text);
    json_t *document = checkpoint_report_json(&made.asked, &made.result);
    ASSERT_FIGURES(document, {"write.durable_s", NAN}, {"write.device_write_bytes", NAN},
                   {"writes.0.durable_s", NAN}, {"training.loop_s", NAN}, {"training.lost_s", NAN},
                   {"training.young_write_s", 10});
    assert_string_equal(load_text(document, "write.durability"), "not durable");
    json_decref(document);
}

/* 4 GiB in 1, 2, 4, 8 and 16 s: median 1 GiB/s and 4 s. Student's interval of the logarithms: they
 * are 0.693 apart around 0, with standard error sqrt(2.5 / 5) 0.693 and quantile 2.776 of 4
 * degrees: exp(+-1.3606), 0.256 .. 3.90. The least durable of all is unverified. */
static void five_checkpoints(void **unused)
{
    struct checkpoint_row writes[] = {row_of(16, 17, 1), row_of(1, 2, 1), row_of(8, 9, 1),
                                      row_of(2, 3, 1), row_of(4, 5, 1)};
    struct made made;

    (void)unused;
    writes[3].device_bytes = (double)GIB;
    make(&made, writes, 5, NULL, 0);
    char *text = text_of_report(&made);
    assert_says(text, " Write 1.00 0.26 .. 3.90 4.00 s 1.00 s 1.00 s\n");
    assert_says(text, " Durable unverified, after 5.00 s: all files synced,");
    assert_says(text, "lost 12.0 s to 5 checkpoints, 2.40 s each");
    assert_says(text, " Bytes 20.00 GiB written, 105.0% of them"); /* (4 x 5 + 1) / 20 */
    free(text);
    json_t *document = checkpoint_report_json(&made.asked, &made.result);
    ASSERT_FIGURES(document, {"write.bytes_per_s", 1073741824},
                   {"write.low_bytes_per_s", 275362495.94018805},
                   {"write.high_bytes_per_s", 4186922771.2741065}, {"write.stall_s", 6});
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_ranks_on_two_nodes),
        cmocka_unit_test(durable_takes_a_sync_and_the_devices),
        cmocka_unit_test(two_checkpoints),
        cmocka_unit_test(one_checkpoint),
        cmocka_unit_test(five_checkpoints),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
