/* SPDX-License-Identifier: Apache-2.0
 *
 * Timelines of several nodes: sent as one piece of memory, laid on another clock, added up.
 */
#include "tests/unit/unit.h"

#include "pipeline/result/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A timeline of `rows` rows of equal length: columns are named, all values zero. */
static struct timeline *blank(const char *const *keys, uint64_t rows, double row_s)
{
    uint32_t columns = 0;

    while (keys[columns])
        columns++;
    struct timeline *timeline = timeline_blank(columns, rows, 4);
    assert_non_null(timeline);
    for (uint32_t i = 0; i < columns; i++)
        snprintf(timeline->keys[i], TIMELINE_KEY_BYTES, "%s", keys[i]);
    for (uint64_t row = 0; row < rows; row++)
        timeline->values[row * (1 + columns)] = row_s * (double)(row + 1);
    timeline->row_count = rows;
    timeline->interval_s = row_s;
    return timeline;
}

static void set(struct timeline *timeline, uint32_t column, const double *values)
{
    for (uint64_t row = 0; row < timeline->row_count; row++)
        timeline->values[row * (1 + (uint64_t)timeline->column_count) + 1 + column] = values[row];
}

static const char *const read_alone[] = {"read_bytes_per_s", NULL};

/* One column with these values. */
static struct timeline *reader(uint64_t rows, double row_s, const double *values)
{
    struct timeline *timeline = blank(read_alone, rows, row_s);

    set(timeline, 0, values);
    return timeline;
}

static struct timeline *join(uint32_t count, struct timeline *const *timelines)
{
    struct timeline_node *nodes = calloc(count, sizeof *nodes);

    assert_non_null(nodes);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(nodes[i].host, sizeof nodes[i].host, "n%u", i);
        nodes[i].timeline = timelines[i];
    }
    struct timeline *sum = timeline_join(nodes, count);
    assert_non_null(sum);
    assert_int_equal(sum->node_count, count);
    return sum;
}

static struct timeline *join_two(struct timeline *first, struct timeline *second)
{
    return join(2, (struct timeline *[]){first, second});
}

static void expect_values(const struct timeline *timeline, const char *key, const double *values)
{
    const uint32_t column = timeline_find(timeline, key);

    if (column == timeline->column_count)
        fail_msg("there is no column %s", key);
    for (uint64_t row = 0; row < timeline->row_count; row++) {
        const double value = timeline_value(timeline, row, column);
        if (!(isnan(value) && isnan(values[row])) && !(fabs(value - values[row]) < 1e-9))
            fail_msg("%s, row %llu: %g, not %g", key, (unsigned long long)row, value, values[row]);
    }
}

/* ---- sums ---- */

static void rates_and_bytes_add_up(void **unused)
{
    static const char *const first_keys[] = {"read_bytes_per_s",    "page_cache_bytes",
                                             "decode_busy_percent", "cpu_user_percent",
                                             "storage_read_ms",     NULL};
    static const char *const second_keys[] = {"nfs_read_bytes_per_s", "decode_busy_percent",
                                              "read_bytes_per_s", NULL};
    struct timeline *first = blank(first_keys, 2, 1), *second = blank(second_keys, 2, 1);

    set(first, 0, (double[]){5, 7});
    set(first, 1, (double[]){100, 200});
    set(first, 2, (double[]){50, 150});
    second->figure_count = 3;
    set(second, 0, (double[]){1, 2});
    set(second, 1, (double[]){25, 30});
    set(second, 2, (double[]){10, 20});
    struct timeline *sum = join_two(first, second);
    assert_int_equal(sum->row_count, 2);
    assert_int_equal(sum->column_count, 4); /* no mean of percentages, no mean of times */
    expect_values(sum, "read_bytes_per_s", (double[]){15, 27});
    expect_values(sum, "page_cache_bytes", (double[]){100, 200}); /* the other has no such column */
    expect_values(sum, "decode_busy_percent", (double[]){75, 180});
    expect_values(sum, "nfs_read_bytes_per_s", (double[]){1, 2});
    timeline_destroy(sum);
}

/* The program's own counters count workers, on any node. */
static void all_of_the_pipeline_adds_up(void **unused)
{
    const char *keys[METER_COUNTS + 1] = {0};
    uint32_t count = 0;

    for (int i = 0; i < METER_COUNTS; i++)
        if (meter_figures[i].key)
            keys[count++] = meter_figures[i].key;
    struct timeline *first = blank(keys, 1, 1), *second = blank(keys, 1, 1);
    for (uint32_t i = 0; i < count; i++) {
        set(first, i, &(double){i});
        set(second, i, &(double){40});
    }
    struct timeline *sum = join_two(first, second);
    for (uint32_t i = 0; i < count; i++)
        expect_values(sum, keys[i], &(double){i + 40});
    timeline_destroy(sum);
}

/* Single counters belong to a node: one name may mean two things on two nodes. */
static void counters_are_not_added(void **unused)
{
    static const char *const keys[] = {"read_bytes_per_s", "disk.vda.read_bytes_per_s", NULL};
    struct timeline *first = blank(keys, 1, 1), *second = blank(keys, 1, 1);

    first->figure_count = second->figure_count = 1;
    struct timeline *sum = join_two(first, second);
    assert_int_equal(sum->column_count, 1);
    assert_int_equal(sum->nodes[1].timeline->column_count, 2);
    timeline_destroy(sum);
}

/* Rows of other lengths and other starts: no byte is lost or added. */
static void bins_need_not_agree(void **unused)
{
    struct timeline *first = reader(4, 0.5, (double[]){0, 0, 0, 0});
    struct timeline *second = reader(5, 0.3, (double[]){10, 20, 30, 40, 50});
    double sum_bytes = 0;

    second->begin_s = 0;
    struct timeline *sum = join_two(first, second);
    expect_values(sum, "read_bytes_per_s",
                  (double[]){(0.3 * 10 + 0.2 * 20) / 0.5, (0.1 * 20 + 0.3 * 30 + 0.1 * 40) / 0.5,
                             (0.2 * 40 + 0.3 * 50) / 0.5, 0});
    for (uint64_t row = 0; row < sum->row_count; row++)
        sum_bytes += 0.5 * timeline_value(sum, row, 0);
    assert_true(fabs(sum_bytes - 0.3 * (10 + 20 + 30 + 40 + 50)) < 1e-9);
    timeline_destroy(sum);
}

static double total(const struct timeline *timeline, uint32_t column)
{
    double sum = 0, before_s = timeline->begin_s;

    for (uint64_t row = 0; row < timeline->row_count; row++) {
        sum += (timeline_time_s(timeline, row) - before_s) * timeline_value(timeline, row, column);
        before_s = timeline_time_s(timeline, row);
    }
    return sum;
}

/* A node that begins and ends within rows of the first, or continues after it, is counted once. */
static void edges_lose_and_make_nothing(void **unused)
{
    static const double starts_s[] = {0, 0.3, 0.9, 1, 1.4, 2.6, 7};

    for (size_t i = 0; i < sizeof starts_s / sizeof *starts_s; i++) {
        struct timeline *first = reader(3, 1, (double[]){5, 6, 7});
        struct timeline *second = reader(4, 0.25, (double[]){400, 0, 0, 800});
        timeline_move(second, starts_s[i], starts_s[i] + 1);
        struct timeline *sum = join_two(first, second);
        if (!(fabs(total(sum, 0) - (18 + 300)) < 1e-9))
            fail_msg("begins at %g s: %g bytes of 318", starts_s[i], total(sum, 0));
        assert_true(timeline_end_s(sum) == fmax(3, starts_s[i] + 1));
        timeline_destroy(sum);
    }
}

/* A value unknown on one node is unknown for both; another row is not affected. */
static void a_gap_is_a_gap(void **unused)
{
    struct timeline *first = reader(3, 1, (double[]){1, 2, 3});
    struct timeline *second = reader(3, 1, (double[]){10, NAN, 30});

    struct timeline *sum = join_two(first, second);
    expect_values(sum, "read_bytes_per_s", (double[]){11, NAN, 33});
    timeline_destroy(sum);
}

/* So it is where the rows of two nodes do not begin together, also in the first and the last one.
 */
static void gaps_stay_gaps_between_rows(void **unused)
{
    static const double late_s[] = {-0.3, -1e-3, -1e-9, 1e-9, 1e-3, 0.3};

    for (size_t i = 0; i < sizeof late_s / sizeof *late_s; i++)
        for (uint64_t gap = 0; gap < 4; gap++) {
            double values[] = {10, 20, 30, 40};
            values[gap] = NAN;
            struct timeline *second = reader(4, 1, values);
            timeline_move(second, late_s[i], late_s[i] + 4);
            struct timeline *sum = join_two(reader(4, 1, (double[]){1, 2, 3, 4}), second);
            for (uint64_t row = 0; row < 4; row++)
                if (isnan(timeline_value(sum, row, 0)) != (row == gap))
                    fail_msg("%g s late, gap in row %llu: row %llu has %g", late_s[i],
                             (unsigned long long)gap, (unsigned long long)row,
                             timeline_value(sum, row, 0));
            timeline_destroy(sum);
        }
}

/* What is unknown of a node that was there for less than half of a row leaves the row known. */
static void a_short_gap_is_none(void **unused)
{
    struct timeline *second = reader(1, 1, (double[]){NAN});

    timeline_move(second, 0.6, 1.9);
    struct timeline *sum = join_two(reader(3, 1, (double[]){1, 2, 3}), second);
    expect_values(sum, "read_bytes_per_s", (double[]){1, NAN, 3});
    timeline_destroy(sum);
}

/* What a node read before node 0 began is none of the first row's; memory and power are as they
 * were when it was there, not less because it was there for a part of the row. */
static void the_first_and_the_last_row_are_like_the_others(void **unused)
{
    static const char *const keys[] = {"read_bytes_per_s", "page_cache_bytes", "gpu_watts", NULL};
    struct timeline *first = blank(keys, 3, 1), *second = blank(keys, 4, 1);

    for (uint32_t k = 0; k < 3; k++) {
        set(first, k, (double[]){100, 100, 100});
        set(second, k, (double[]){10, 10, 10, 10});
    }
    timeline_move(second, -0.75, 3.25);
    struct timeline *sum = join_two(first, second);
    assert_int_equal(sum->row_count, 3);
    assert_true(timeline_end_s(sum) == 3.25);
    expect_values(sum, keys[0], (double[]){110, 110, 100 / 1.25 + 10});
    expect_values(sum, keys[1], (double[]){110, 110, 110});
    expect_values(sum, keys[2], (double[]){110, 110, 110});
    timeline_destroy(sum);
    /* A late one whose rows are shorter: in the first row for a quarter of it. */
    first = blank(keys, 2, 1);
    second = blank(keys, 3, 0.5);
    for (uint32_t k = 0; k < 3; k++) {
        set(first, k, (double[]){100, 100});
        set(second, k, (double[]){10, 10, 10});
    }
    timeline_move(second, 0.75, 2.25);
    sum = join_two(first, second);
    assert_int_equal(sum->row_count, 2);
    expect_values(sum, keys[0], (double[]){102.5, 90});
    expect_values(sum, keys[1], (double[]){110, 110});
    timeline_destroy(sum);
}

/* A node adds nothing while absent, and its absence does not fill a gap of the others. */
static void one_comes_late_and_leaves_early(void **unused)
{
    struct timeline *first = reader(5, 1, (double[]){1, 2, 3, 4, NAN});
    struct timeline *second = reader(2, 1, (double[]){10, 20});

    timeline_move(second, 1, 3);
    struct timeline *sum = join_two(first, second);
    expect_values(sum, "read_bytes_per_s", (double[]){1, 12, 23, 4, NAN});
    timeline_destroy(sum);
}

static void one_alone_and_empty_ones(void **unused)
{
    struct timeline *sum =
        join(1, (struct timeline *[]){reader(2, 1, (double[]){1, 2})}); /* the other's was lost */
    expect_values(sum, "read_bytes_per_s", (double[]){1, 2});
    timeline_destroy(sum);
    sum = join_two(reader(2, 1, (double[]){1, 2}), reader(0, 1, NULL)); /* it has no row */
    expect_values(sum, "read_bytes_per_s", (double[]){1, 2});
    timeline_destroy(sum);
    sum = join_two(reader(0, 1, NULL), reader(2, 1, (double[]){1, 2})); /* rows of equal length */
    assert_int_equal(sum->row_count, 2);
    expect_values(sum, "read_bytes_per_s", (double[]){1, 2});
    timeline_destroy(sum);
}

/* The provenance of a phase is that of all nodes. */
static void phases_add_up(void **unused)
{
    struct timeline *timelines[2];

    for (int i = 0; i < 2; i++) {
        timelines[i] = reader(1, 1, (double[]){0});
        struct timeline_phase *phases = timelines[i]->phases;
        phases[0] = (struct timeline_phase){.name = "drop", .to_s = 1, .provenance = {.read = 5}};
        phases[1] = (struct timeline_phase){
            .name = "epoch", .from_s = 1 + i, .to_s = 2, .provenance = {.read = 100, .local = 40}};
        /* The second node's phase is of another run. */
        phases[2] = (struct timeline_phase){
            .name = "epoch", .run = (uint64_t)i, .number = 1, .provenance = {.read = 7}};
        timelines[i]->phase_count = 3;
        timelines[i]->provenance =
            (struct provenance){.read = 107, .local = 40, .fabric = i ? NAN : 3};
    }
    struct timeline *sum = join_two(timelines[0], timelines[1]);
    assert_int_equal(sum->phase_count, 3);
    assert_true(sum->phases[0].provenance.read == 10);
    assert_true(sum->phases[1].provenance.read == 200 && sum->phases[1].provenance.local == 80);
    assert_true(sum->phases[1].from_s == 1);
    assert_true(sum->phases[2].provenance.read == 7);
    assert_true(sum->provenance.read == 214 && sum->provenance.local == 80);
    timeline_destroy(sum);
}

/* ---- another clock ---- */

static void clocks_that_differ_and_drift(void **unused)
{
    struct timeline *timeline = reader(4, 1, (double[]){1, 2, 3, 4});

    timeline->begin_s = 0.5;
    timeline->phases[0] = (struct timeline_phase){.name = "epoch", .from_s = 1, .to_s = 4};
    timeline->phase_count = 1;
    /* The node began 100 s later, and 4 s of its clock are 4.4 s of the others. */
    timeline_move(timeline, 100, 104.4);
    for (uint64_t row = 0; row < 4; row++)
        assert_true(fabs(timeline_time_s(timeline, row) - (100 + 1.1 * (double)(row + 1))) < 1e-9);
    assert_true(fabs(timeline->begin_s - 100.55) < 1e-9);
    assert_true(fabs(timeline->phases[0].from_s - 101.1) < 1e-9);
    assert_true(fabs(timeline->phases[0].to_s - 104.4) < 1e-9);
    expect_values(timeline, "read_bytes_per_s", (double[]){1, 2, 3, 4});
    /* A node that began before the first: its rows have times below 0. */
    timeline_move(timeline, -3, timeline_time_s(timeline, 3) - 3);
    assert_true(fabs(timeline_time_s(timeline, 0) - (101.1 - 3)) < 1e-9);
    timeline_destroy(timeline);

    timeline = reader(0, 1, NULL); /* without rows there is only a start */
    timeline_move(timeline, 5, 5);
    assert_true(timeline->begin_s == 5);
    timeline_destroy(timeline);
}

/* ---- one block of memory ---- */

static struct timeline *sent(const struct timeline *timeline, uint32_t columns)
{
    uint64_t bytes = 0;
    void *packed = timeline_pack(timeline, columns, &bytes);

    assert_non_null(packed);
    struct timeline *received = timeline_unpack(packed, bytes);
    free(packed);
    assert_non_null(received);
    return received;
}

static void arrives_as_it_was(void **unused)
{
    static const char *const keys[] = {"read_bytes_per_s", "page_cache_bytes",
                                       "disk.vda.read_bytes_per_s", NULL};
    struct timeline *timeline = blank(keys, 3, 0.5);

    timeline->figure_count = 2;
    timeline->start_unix_ns = 123;
    timeline->begin_s = 0.25;
    set(timeline, 0, (double[]){1, NAN, 3});
    set(timeline, 2, (double[]){7, 8, 9});
    timeline->phases[0] = (struct timeline_phase){.name = "epoch", .number = 6, .to_s = 1};
    timeline->phase_count = 1;
    timeline->absent_count = 1;
    snprintf(timeline->absent[0], sizeof timeline->absent[0], "gpu: there is none");
    for (uint32_t columns = 2; columns <= 4; columns++) { /* 4: at most 3 exist */
        struct timeline *received = sent(timeline, columns);
        assert_int_equal(received->column_count, columns < 3 ? columns : 3);
        assert_int_equal(received->figure_count, 2);
        assert_int_equal(received->row_count, 3);
        assert_int_equal(received->start_unix_ns, 123);
        assert_true(received->begin_s == 0.25 && received->interval_s == 0.5);
        assert_true(timeline_time_s(received, 2) == 1.5);
        expect_values(received, keys[0], (double[]){1, NAN, 3});
        if (columns > 2)
            expect_values(received, keys[2], (double[]){7, 8, 9});
        assert_int_equal(received->phase_count, 1);
        assert_string_equal(received->phases[0].name, "epoch");
        assert_int_equal(received->phases[0].number, 6);
        assert_string_equal(received->absent[0], "gpu: there is none");
        timeline_destroy(received);
    }
    struct timeline *received = sent(timeline, 1); /* fewer than its figures */
    assert_int_equal(received->figure_count, 1);
    timeline_destroy(received);
    timeline_destroy(timeline);
}

static void empty_and_joined_ones_arrive(void **unused)
{
    struct timeline *nothing = reader(0, 1, NULL), *received = sent(nothing, 1);

    assert_int_equal(received->row_count, 0);
    assert_int_equal(received->phase_count, 0);
    timeline_destroy(received);
    struct timeline *sum = join_two(reader(1, 1, (double[]){1}), reader(1, 1, (double[]){2}));
    received = sent(sum, 1);
    assert_int_equal(received->node_count, 0); /* its nodes stay where they are */
    expect_values(received, "read_bytes_per_s", (double[]){3});
    timeline_destroy(received);
    timeline_destroy(sum);
    timeline_destroy(nothing);
}

static void what_is_no_timeline_is_refused(void **unused)
{
    struct timeline *timeline = reader(2, 1, (double[]){1, 2});
    uint64_t bytes = 0;
    char *packed = timeline_pack(timeline, 1, &bytes);
    struct timeline head;

    assert_non_null(packed);
    assert_null(timeline_unpack(packed, 0));
    assert_null(timeline_unpack(packed, sizeof head - 1));
    assert_null(timeline_unpack(packed, bytes - 1));
    memcpy(&head, packed, sizeof head);
    const struct timeline good = head;
    head.column_count = 2; /* more than exist */
    memcpy(packed, &head, sizeof head);
    assert_null(timeline_unpack(packed, bytes));
    head = good;
    head.row_count += UINT64_C(1) << 60; /* the same size modulo 2^64 */
    memcpy(packed, &head, sizeof head);
    assert_null(timeline_unpack(packed, bytes));
    head = good;
    head.figure_count = 2;
    memcpy(packed, &head, sizeof head);
    assert_null(timeline_unpack(packed, bytes));
    memcpy(packed, &good, sizeof good);
    struct timeline *received = timeline_unpack(packed, bytes);
    assert_non_null(received);
    timeline_destroy(received);
    free(packed);
    timeline_destroy(timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_and_bytes_add_up),
        cmocka_unit_test(all_of_the_pipeline_adds_up),
        cmocka_unit_test(counters_are_not_added),
        cmocka_unit_test(bins_need_not_agree),
        cmocka_unit_test(edges_lose_and_make_nothing),
        cmocka_unit_test(a_gap_is_a_gap),
        cmocka_unit_test(gaps_stay_gaps_between_rows),
        cmocka_unit_test(a_short_gap_is_none),
        cmocka_unit_test(the_first_and_the_last_row_are_like_the_others),
        cmocka_unit_test(one_comes_late_and_leaves_early),
        cmocka_unit_test(one_alone_and_empty_ones),
        cmocka_unit_test(phases_add_up),
        cmocka_unit_test(clocks_that_differ_and_drift),
        cmocka_unit_test(arrives_as_it_was),
        cmocka_unit_test(empty_and_joined_ones_arrive),
        cmocka_unit_test(what_is_no_timeline_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
