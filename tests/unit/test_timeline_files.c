/* SPDX-License-Identifier: Apache-2.0
 * A timeline made by hand through each of the files that hold one, and into a picture's program. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "report/chart.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, ROWS = 6 };

static const char *const keys[COLUMNS] = {"read_bytes_per_s", "from_local_bytes_per_s",
                                          "from_fabric_bytes_per_s", "fabric_receive_bytes_per_s",
                                          "fabric_send_bytes_per_s"};

/* Half a second per row, except the last; all rates are exact in six digits. */
static const double rows[ROWS][1 + COLUMNS] = {
    {0.5, 0, 0, 0, 1e6, 1e6},       {1.0, 8e7, 0, 8e7, 1.01e8, 2e7}, {1.5, 9e7, 0, 6e7, 8e7, 2e7},
    {2.0, 9e7, NAN, NAN, NAN, NAN}, {2.5, 9e7, 1e6, 0, 2e7, 2.1e7},  {2.75, 0, 0, 0, 0, 0}};

static const struct provenance provenance = {.read = 12e6,
                                             .local = 8e6,
                                             .page_cache = 4e6,
                                             .fabric = NAN,
                                             .ahead = 3,
                                             .received = 7,
                                             .sent = 9,
                                             .excess = -2,
                                             .gradients = 1e15,
                                             .witness = PROVENANCE_RECEIVED};

static struct timeline *make(void)
{
    struct timeline *timeline = timeline_blank(COLUMNS, ROWS, 3);

    assert_non_null(timeline);
    for (int i = 0; i < COLUMNS; i++)
        snprintf(timeline->keys[i], TIMELINE_KEY_BYTES, "%s", keys[i]);
    memcpy(timeline->values, rows, sizeof rows);
    timeline->row_count = ROWS;
    timeline->start_unix_ns = UINT64_C(1700000000500000000);
    timeline->start_monotonic_ns = UINT64_C(12500000000);
    timeline->clock_step_s = -1.5;
    timeline->interval_s = 0.5;
    timeline->phases[0] = (struct timeline_phase){.name = "drop", .to_s = 0.5};
    timeline->phases[1] = (struct timeline_phase){.name = "epoch",
                                                  .run = 2,
                                                  .number = 4,
                                                  .from_s = 0.5,
                                                  .to_s = 2.75,
                                                  .provenance = provenance};
    timeline->phases[2] = (struct timeline_phase){
        .name = "shuffle", .run = 2, .number = 5, .from_s = 1.5, .to_s = 2.0};
    timeline->phase_count = 3;
    timeline->phases_lost = 11;
    timeline->provenance = provenance;
    timeline->samples = 55;
    timeline->late = 3;
    timeline->cpu_percent = 0.25;
    timeline->absent_count = 1;
    snprintf(timeline->absent[0], sizeof timeline->absent[0], "gpu: there is none");
    return timeline;
}

/* ---- JSON ---- */

/* Through the file's text and back. */
static json_t *json_of(struct timeline *timeline)
{
    json_t *written = report_timeline(timeline);
    char *text = report_json_text(written, 17);
    json_t *read = text ? json_loads(text, 0, NULL) : NULL;

    assert_non_null(read);
    json_decref(written);
    free(text);
    timeline_destroy(timeline);
    return read;
}

static json_t *json_of_made(void)
{
    return json_of(make());
}

/* Two nodes on one clock, whose times of day differ by 2.5 s; host names have maximum length. */
static struct timeline *make_joined(void)
{
    struct timeline_node *nodes = calloc(2, sizeof *nodes);

    assert_non_null(nodes);
    for (int i = 0; i < 2; i++) {
        memset(nodes[i].host, i ? 'b' : 'a', sizeof nodes[i].host - 1);
        nodes[i].timeline = make();
    }
    nodes[1].clock_offset_s = 2.5;
    nodes[1].clock_uncertainty_s = 1e-5;
    nodes[1].clock_drift_s = -1e-4;
    nodes[1].timeline->start_unix_ns += UINT64_C(2500000000);
    nodes[1].timeline->values[1 * (1 + COLUMNS) + 3] = 4e7; /* fabric of the second row */
    struct timeline *joined = timeline_join(nodes, 2);
    assert_non_null(joined);
    return joined;
}

static void expect_refusal(json_t *json, const char *reason)
{
    fail_clear();
    assert_null(report_timeline_load("x.json", json));
    if (!strstr(fail_reason(), reason))
        fail_msg("'%s' does not say '%s'", fail_reason(), reason);
    json_decref(json);
}

static void damaged_json_is_refused(void **unused)
{
    json_t *json = json_of_made();

    json_array_append_new(json_array_get(json_object_get(json, "rows"), 2), json_real(1));
    expect_refusal(json, "row 2 has 7 numbers, expected 6");
    json = json_of_made();
    json_array_set_new(json_array_get(json_object_get(json, "rows"), 2), 0, json_real(0.75));
    expect_refusal(json, "row 2 is earlier");
    json = json_of_made();
    json_array_set_new(json_object_get(json, "columns"), 3, json_integer(1));
    expect_refusal(json, "unknown name of column 3");
    json = json_of_made();
    json_object_set_new(json_array_get(json_object_get(json, "phases"), 1), "from_s", json_null());
    expect_refusal(json, "phase 1");
    expect_refusal(json_object(), "no series");
    expect_refusal(NULL, "no series");
    json = json_of(make_joined());
    json_object_del(json_array_get(json_object_get(json, "nodes"), 1), "columns");
    expect_refusal(json_deep_copy(json), "no series");
    json_object_del(json_array_get(json_object_get(json, "nodes"), 0), "host");
    expect_refusal(json, "node 0 without a valid host");
}

/* ---- several nodes ---- */

/* Its first rows are before second 0 of node 0. */
static void a_node_that_began_earlier(void **unused)
{
    struct timeline *joined = make_joined();
    struct timeline *early = joined->nodes[1].timeline;

    timeline_move(early, -2 * timeline_end_s(early), -timeline_end_s(early));
    const double begin_s = early->begin_s, end_s = timeline_end_s(early);
    assert_true(end_s < 0);
    json_t *json = json_of(joined);
    struct timeline *read = report_timeline_load("x.json", json);
    assert_non_null(read);
    json_decref(json);
    assert_true(read->nodes[1].timeline->begin_s == begin_s);
    assert_true(timeline_end_s(read->nodes[1].timeline) == end_s);
    timeline_destroy(read);
}

/* ---- CSV ---- */

static char *csv_of(const struct timeline *timeline)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    report_series_csv(stream, timeline);
    fclose(stream);
    return text;
}

/* A host may have any name. */
static void hosts_keep_to_their_columns(void **unused)
{
    struct timeline *joined = make_joined();

    snprintf(joined->nodes[1].host, sizeof joined->nodes[1].host, "rack 1, \"left\":b");
    memset(joined->nodes[1].timeline->keys[4], 'k', TIMELINE_KEY_BYTES - 1);
    char *text = csv_of(joined);
    struct timeline *read = report_series_load("x.csv", text);
    assert_non_null(read);
    assert_int_equal(read->node_count, 2);
    assert_string_equal(read->nodes[0].host, joined->nodes[0].host);
    assert_string_equal(read->nodes[1].host, "rack 1_ _left__b");
    assert_int_equal(strlen(read->nodes[1].timeline->keys[4]), TIMELINE_KEY_BYTES - 1);
    assert_true(timeline_value(read, 1, 2) == 8e7 + 4e7);
    assert_true(timeline_value(read->nodes[1].timeline, 1, 2) == 4e7);
    timeline_destroy(read);
    free(text);
    timeline_destroy(joined);
}

static void expect_csv_refusal(const char *csv, const char *reason)
{
    char *text = strdup(csv);

    fail_clear();
    assert_null(report_series_load("x.csv", text));
    if (!strstr(fail_reason(), reason))
        fail_msg("'%s' does not say '%s'", fail_reason(), reason);
    free(text);
}

static void damaged_csv_is_refused(void **unused)
{
    expect_csv_refusal("", "not an iobench series");
    expect_csv_refusal("time_s,read\n1,2\n", "not an iobench series");
    expect_csv_refusal("time_s,phases,a,b\n1,,2\n", "row 1 has 1 numbers, expected 2");
    expect_csv_refusal("time_s,phases,a\n1,,2\n0.5,,2\n",
                       "row 2 does not start with a time after 1");
    expect_csv_refusal("time_s,phases,a\n1,epoch,2\n", "'epoch' is not a phase");
    expect_csv_refusal("time_s,phases,a\nx,,2\n", "row 1 does not start with a time");
    char heading[512] = "time_s,phases,";
    memset(heading + strlen(heading), 'k', TIMELINE_KEY_BYTES);
    expect_csv_refusal(strcat(heading, "\n1,,2\n"), "column name of 128 bytes, at most 127");
    memset(strcpy(heading, "time_s,phases,") + 14, 'h', 64);
    strcpy(heading + 78, ":read_bytes_per_s\n1,,2\n");
    expect_csv_refusal(heading, "host name of 64 bytes, at most 63");
}

/* ---- lines ---- */

static void lines_of_monitor_are_read(void **unused)
{
    struct timeline *read = report_lines_load(
        "x", "{\"unix_time_s\":1700000001.0,\"elapsed_s\":1.0,\"interval_s\":1.0,"
             "\"storage_read_bytes_per_s\":5e6,\"nfs_read_bytes_per_s\":null,"
             "\"a_key_of_as_many_bytes_as_there_is_room_and_its_end_is_too_long_"
             "a_key_of_as_many_bytes_as_there_is_room_and_its_end_is_too_long_\":1}\n"
             "{\"unix_time_s\":1700000002.0,\"elapsed_s\":2.0,\"interval_s\":1.0,"
             "\"storage_read_bytes_per_s\":7e6,\"nfs_read_bytes_per_s\":null}\n");

    assert_non_null(read);
    assert_int_equal(read->row_count, 2);
    assert_int_equal(read->column_count, 2);
    assert_int_equal(read->start_unix_ns, UINT64_C(1700000000000000000));
    assert_true(timeline_value(read, 1, timeline_find(read, "storage_read_bytes_per_s")) == 7e6);
    assert_true(isnan(timeline_value(read, 1, timeline_find(read, "nfs_read_bytes_per_s"))));
    timeline_destroy(read);
    assert_null(report_lines_load("x", "{}\n"));
    assert_null(report_lines_load("x", "{\"elapsed_s\":1,\"a\":2}\nnonsense\n"));
    assert_reason("line 2");
    assert_null(report_lines_load("x", "{\"elapsed_s\":2,\"a\":2}\n{\"elapsed_s\":1,\"a\":2}\n"));
}

/* ---- the chart ---- */

/* Its values, a panel after the other, its words, what it is to a browser, and its picture. */
static void put_chart(FILE *stream, enum chart_kind kind, const struct chart_source *sources,
                      uint32_t count)
{
    struct chart chart;
    struct svg svg;
    char words[512];

    assert_int_equal(chart_make(&chart, kind, sources, count, CHART_BINS), 0);
    for (uint32_t i = 0; i < chart.panel_count; i++) {
        fprintf(stream, "panel%u\n", i);
        for (uint32_t bin = 0; bin < chart.bins; bin++) {
            fprintf(stream, "%.6g", (bin + 0.5) * chart.step_s);
            for (uint32_t k = 0; k < chart.panels[i].curve_count; k++)
                fprintf(stream, " %.6g", chart.panels[i].curves[k].values[bin]);
            fputc('\n', stream);
        }
        fprintf(stream, "%s\n", chart_words(&chart, &chart.panels[i], words, sizeof words));
    }
    json_t *json = chart_json(&chart);
    assert_int_equal(json_dumpf(json, stream, JSON_INDENT(1) | JSON_REAL_PRECISION(9)), 0);
    json_decref(json);
    chart_draw(&svg, "it's", &chart);
    assert_int_equal(svg_write(&svg, stream), 0);
    svg_release(&svg);
    chart_release(&chart);
}

/* The second one's clock is one second ahead; it has no fabric and other bins. */
static struct timeline *make_late(const struct timeline *made)
{
    struct timeline *late = timeline_blank(3, 4, 0);

    snprintf(late->keys[0], TIMELINE_KEY_BYTES, "storage_read_bytes_per_s");
    snprintf(late->keys[1], TIMELINE_KEY_BYTES, "cpu_io_wait_percent");
    snprintf(late->keys[2], TIMELINE_KEY_BYTES, "page_cache_bytes");
    late->start_unix_ns = made->start_unix_ns + UINT64_C(1000000000);
    late->interval_s = 0.25;
    for (int i = 0; i < 4; i++) {
        late->values[4 * i] = 0.25 * (i + 1);
        late->values[4 * i + 1] = 4e6 * i;
        late->values[4 * i + 2] = 10 * i;
        late->values[4 * i + 3] = 2e9;
    }
    late->row_count = 4;
    return late;
}

/* One node; two by their clocks, and their sum; two runs, each from second 0. UPDATE=1 writes the
 * page anew. */
static void charts_are_a_page(void **unused)
{
    struct timeline *made = make(), *late = make_late(made);
    const struct chart_source sources[] = {{"first", made}, {"the 'other'", late}};
    const char *source = getenv("srcdir");
    char path[512], *text = NULL, *wanted = NULL;
    size_t bytes = 0, wanted_bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    put_chart(stream, CHART_OF_NODES, sources, 1);
    put_chart(stream, CHART_OF_NODES, sources, 2);
    put_chart(stream, CHART_OF_RUNS, sources, 2);
    fclose(stream);
    snprintf(path, sizeof path, "%s/tests/golden/pages/charts.txt", source ? source : ".");
    if (getenv("UPDATE") && (stream = fopen(path, "w"))) {
        fputs(text, stream);
        fclose(stream);
    }
    assert_int_equal(file_load(path, 1 << 20, &wanted, &wanted_bytes), 0);
    assert_string_equal(text, wanted);
    free(wanted);
    free(text);
    timeline_destroy(late);
    timeline_destroy(made);
}

static void nothing_to_draw(void **unused)
{
    struct timeline *blank = timeline_blank(1, 1, 0);
    const struct chart_source source = {"x", blank};
    struct chart chart;

    assert_true(chart_make(&chart, CHART_OF_NODES, &source, 1, CHART_BINS) < 0);
    assert_reason("without rows");
    chart_release(&chart);
    blank->values[0] = blank->interval_s = 1;
    blank->row_count = 1;
    assert_true(chart_make(&chart, CHART_OF_NODES, &source, 1, CHART_BINS) < 0);
    assert_reason("no probe counted");
    chart_release(&chart);
    timeline_destroy(blank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_json_is_refused),
        cmocka_unit_test(a_node_that_began_earlier),
        cmocka_unit_test(hosts_keep_to_their_columns),
        cmocka_unit_test(damaged_csv_is_refused),
        cmocka_unit_test(lines_of_monitor_are_read),
        cmocka_unit_test(charts_are_a_page),
        cmocka_unit_test(nothing_to_draw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
