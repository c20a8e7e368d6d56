/* SPDX-License-Identifier: Apache-2.0
 * Rates out of raw numbers: wrapped, restarted, stuck, missing; and a series that gets long. */
#include "tests/unit/unit.h"

#include "telemetry/series.h"

#include <math.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static struct metric counter(uint8_t bits, uint32_t scale)
{
    struct metric metric = {.probe = "disk", .kind = METRIC_COUNTER, .bits = bits, .scale = scale};

    strcpy(metric.part, "vda");
    strcpy(metric.quantity, "read_bytes");
    return metric;
}

static void growth_of_counters(void **unused)
{
    struct metric wide = counter(64, 1), narrow = counter(32, 1), stuck = counter(64, 1);
    uint64_t growth = 0;

    stuck.saturates = true;
    assert_true(series_growth(&wide, 5, 12, &growth) && growth == 7);
    assert_false(series_growth(&wide, 12, 5, &growth));                             /* restarted */
    assert_true(series_growth(&narrow, UINT32_MAX - 1, 3, &growth) && growth == 5); /* wrapped */
    assert_false(series_growth(&narrow, 1000, 3, &growth)); /* slightly lower: restarted */
    assert_false(series_growth(&wide, PROBE_MISSING, 3, &growth));
    assert_false(series_growth(&wide, 3, PROBE_MISSING, &growth));
    assert_false(series_growth(&stuck, UINT32_MAX, UINT32_MAX, &growth));
    assert_false(series_growth(&stuck, 7, UINT32_MAX, &growth));
    assert_true(series_growth(&stuck, 7, UINT64_C(1) << 40, &growth));
    assert_true(series_growth(&wide, 7, UINT32_MAX, &growth));
}

static void rates_over_gaps(void **unused)
{
    const struct metric metrics[] = {counter(64, 512),
                                     {.probe = "memory", .kind = METRIC_LEVEL, .scale = 1024}};
    const uint64_t rows[][2] = {{100, 7}, {300, 9}, {PROBE_MISSING, PROBE_MISSING},
                                {900, 5}, {10, 5},  {20, 6}};
    struct series series;

    assert_int_equal(series_open(&series, metrics, 2, 64, 4, SERIES_THIN), 0);
    for (uint64_t i = 0; i < 6; i++)
        series_append(&series, (i + 1) * SECOND, rows[i]);
    assert_true(isnan(series_rate(&series, 0, 0)));
    assert_true(series_rate(&series, 1, 0) == 200 * 512.0);
    assert_true(series_rate(&series, 1, 1) == 9 * 1024.0);
    assert_true(isnan(series_rate(&series, 2, 0)) && isnan(series_rate(&series, 2, 1)));
    assert_true(series_rate(&series, 3, 0) == 600 * 512 / 2.0); /* over both seconds */
    assert_true(isnan(series_rate(&series, 4, 0)));             /* restarted */
    assert_true(series_rate(&series, 5, 0) == 10 * 512.0);
    /* 200 + 600 + 10 */
    assert_true(series_total(&series, 0, 0, UINT64_MAX) == 810 * 512.0);
    assert_true(series_total(&series, 0, 2 * SECOND, 4 * SECOND) == 600 * 512.0);
    assert_true(isnan(series_total(&series, 0, 6 * SECOND, UINT64_MAX)));
    assert_int_equal(series_find(&series, "disk", NULL, "read_bytes"), 0);
    assert_int_equal(series_find(&series, "disk", "vdb", "read_bytes"), 2);
    series_close(&series);
}

static void a_long_series_keeps_its_total(void **unused)
{
    const struct metric metric = counter(64, 1);
    struct series series;

    assert_int_equal(series_open(&series, &metric, 1, 16, 2, SERIES_THIN), 0);
    for (uint64_t i = 0; i < 1000; i++)
        series_append(&series, (i + 1) * SECOND, &(uint64_t){i * 10});
    assert_true(series.row_count <= 16 && series.row_count >= 8);
    assert_int_equal(series.stride, 64);
    for (uint64_t row = 1; row < series.row_count; row++) {
        assert_int_equal(series_time_ns(&series, row) - series_time_ns(&series, row - 1),
                         64 * SECOND);
        assert_true(series_rate(&series, row, 0) == 10);
    }
    assert_int_equal(series_value(&series, 0, 0), 0);
    for (uint64_t i = 0; i < 3; i++)
        series_mark(&series,
                    &(struct series_mark){.phase = "epoch", .number = i, .from_ns = i, .to_ns = 7});
    assert_int_equal(series.mark_count, 2);
    assert_int_equal(series.marks_lost, 1);
    assert_string_equal(series.marks[0].phase, "epoch");
    assert_int_equal(series.marks[1].number, 1);
    series_close(&series);
}

static void a_recent_series_keeps_its_end(void **unused)
{
    const struct metric metric = counter(64, 1);
    struct series series;

    assert_int_equal(series_open(&series, &metric, 1, 16, 2, SERIES_RECENT), 0);
    for (uint64_t i = 0; i < 1000; i++)
        series_append(&series, (i + 1) * SECOND, &(uint64_t){i * 10});
    assert_true(series.row_count <= 16 && series.row_count >= 8);
    assert_int_equal(series_value(&series, series.row_count - 1, 0), 9990);
    for (uint64_t row = 1; row < series.row_count; row++)
        assert_true(series_rate(&series, row, 0) == 10);
    series_close(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_of_counters),
        cmocka_unit_test(rates_over_gaps),
        cmocka_unit_test(a_long_series_keeps_its_total),
        cmocka_unit_test(a_recent_series_keeps_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
