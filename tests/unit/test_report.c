/* SPDX-License-Identifier: Apache-2.0
 * Reports of a result that is made by hand. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/option.h"
#include "report/report.h"
#include "cmd/size/model.h"
#include "report/words.h"
#include "tests/unit/allocations.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 3, EPOCHS = 2, SECOND = 1000000000 };

struct made {
    struct job job;
    struct result result;
    struct result_run runs[RUNS];
    struct result_epoch epochs[RUNS][EPOCHS];
    struct summary summary;
    /* events over time */
    struct timeline timeline;
    char keys[4][TIMELINE_KEY_BYTES];
    double values[3][5];
    struct timeline_phase phases[2];
};

static void fill_epoch(struct result_epoch *epoch, uint64_t run, uint64_t number)
{
    *epoch = (struct result_epoch){
        .epoch = number,
        .samples = 1000 * (run + 1), /* 500, 1000, 1500 samples/s; later epochs are twice as fast */
        .record_bytes = 100000 * (run + 1),
        .request_bytes = 110000 * (run + 1),
        .requests = 10,
        .batches = 4,
        .wall_ns = (number ? 1 : 2) * (uint64_t)SECOND,
        .wait_ns = SECOND / 4,
        .compute_ns = 3 * (uint64_t)SECOND / 4,
        .first_step_ns = SECOND / 4,
        .first_compute_ns = SECOND / 8,
        .limit = number ? RESULT_LIMIT_TRAINER : RESULT_LIMIT_STORAGE,
        .waits = {.decode_input_ns = SECOND, .loader_storage_ns = SECOND / 2},
        .device = {.known = true, .bytes = 90000 * (run + 1), .method = "a test"},
        .digest_sum = 7,
        .digest_xor = 9,
    };
}

/* Three seconds, two figures, two counters; the epoch covers all but the last second. */
static void fill_timeline(struct made *made)
{
    static const char *const keys[] = {"read_bytes_per_s", "from_local_bytes_per_s",
                                       "disk.vda.read_bytes_per_s", "memory.free_bytes"};
    const double rows[3][5] = {
        {1, 8e6, 8e6, 9e6, 5}, {2, 4.4e6, NAN, 0, 5}, {3, 1234567.891, 0, 0, NAN}};
    const struct provenance provenance = {.read = 12e6,
                                          .local = 8e6,
                                          .page_cache = 4e6,
                                          .received = NAN,
                                          .sent = NAN,
                                          .excess = NAN,
                                          .witness = PROVENANCE_DISK};

    for (int i = 0; i < 4; i++)
        snprintf(made->keys[i], sizeof made->keys[i], "%s", keys[i]);
    memcpy(made->values, rows, sizeof rows);
    made->phases[0] = (struct timeline_phase){.name = "epoch", .to_s = 2, .provenance = provenance};
    made->phases[1] =
        (struct timeline_phase){.name = "shuffle", .number = 1, .from_s = 1.5, .to_s = 2.5};
    made->timeline = (struct timeline){.start_unix_ns = UINT64_C(1700000000000000000),
                                       .interval_s = 1,
                                       .column_count = 4,
                                       .figure_count = 2,
                                       .keys = made->keys,
                                       .row_count = 3,
                                       .values = made->values[0],
                                       .phase_count = 2,
                                       .phases = made->phases,
                                       .provenance = provenance,
                                       .absent_count = 1,
                                       .absent = {"gpu: none"}};
    made->result.timeline = &made->timeline;
}

/* *made must not move: the result points into it. */
static void make(struct made *made)
{
    memset(made, 0, sizeof *made);
    assert_int_equal(option_defaults(job_options, &made->job), 0);
    made->job.epochs = EPOCHS;
    made->result = (struct result){.job = &made->job,
                                   .threads = 2,
                                   .records = 1000,
                                   .shards = 1,
                                   .data_bytes = 1 << 20,
                                   .record_bytes_total = 100000,
                                   .reader_engine = "a test's engine",
                                   .run_count = RUNS,
                                   .runs = made->runs,
                                   .valid = true};
    fill_timeline(made);
    snprintf(made->result.data, sizeof made->result.data, "/data/\"set\"");
    snprintf(made->result.format, sizeof made->result.format, "recordio");
    for (uint64_t i = 0; i < RUNS; i++) {
        made->runs[i] = (struct result_run){.number = i,
                                            .epoch_count = EPOCHS,
                                            .epochs_run = EPOCHS,
                                            .epochs = made->epochs[i],
                                            .valid = true,
                                            .cold = {.state = RESULT_CACHE_COLD,
                                                     .residue_percent = 0.5 * (double)i,
                                                     .total_bytes = 1 << 20,
                                                     .method = "drop_caches"}};
        for (uint64_t k = 0; k < EPOCHS; k++)
            fill_epoch(&made->epochs[i][k], i, k);
        histogram_add(&made->runs[i].read_latency_ns, 1000000 * (i + 1));
    }
    assert_int_equal(summary_make(&made->result, &made->summary), 0);
}

static void release(struct made *made)
{
    option_release(job_options, &made->job);
}

static char *table_of(const struct made *made)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    report_text(stream, &made->result, &made->summary, false);
    fclose(stream);
    return text;
}

static void assert_contains(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        print_error("'%s' is missing in:\n%s\n", wanted, text);
    assert_non_null(strstr(text, wanted));
}

static void summary_adds_up(void **unused)
{
    struct made made;

    make(&made);
    const struct summary *summary = &made.summary;
    assert_int_equal(summary->runs, RUNS);
    /* The median run: 2 epochs of 2000 samples in 3 s. */
    assert_equal(summary->samples_per_s.median, 4000.0 / 3);
    assert_equal(summary->samples_per_s.minimum, 2000.0 / 3);
    assert_equal(summary->samples_per_s.coverage, 0.95);
    assert_equal(summary->first.samples_per_s.median, 1000);
    assert_equal(summary->later.samples_per_s.median, 2000);
    assert_equal(summary->au_percent.median, 75);
    /* Without first steps: 5/8 s of compute in 7/4 s and in 3/4 s. */
    assert_equal(summary->mlperf_au_percent.median, (100 * 5.0 / 14 + 100 * 5.0 / 6) / 2);
    assert_int_equal(summary->read_latency_ns.count, 3);
    assert_int_equal(summary->cache, RESULT_CACHE_COLD);
    assert_equal(summary->residue_percent, 1);
    assert_true(summary->device_known);
    assert_int_equal(summary->device_bytes, 540000);
    assert_int_equal(summary->first_record_bytes, 600000);
    /* First epochs are longer, so storage is the bottleneck most of the time. */
    assert_int_equal(summary->limit, RESULT_LIMIT_STORAGE);
    assert_equal(summary->shares.loader_storage, 100.0 / 3);
    assert_equal(summary->shares.decode_input, 100.0 / 3);
    release(&made);
}

/* An aborted run is shown but not counted. */
static void broken_runs_do_not_count(void **unused)
{
    struct made made;

    make(&made);
    made.runs[2].epoch_count = 1;
    made.runs[2].epochs_run = 1;
    made.runs[1].epochs[0].device.known = false;
    made.runs[1].cold.state = RESULT_CACHE_UNVERIFIED;
    made.runs[1].cold.pages = RESIDENCY_UNVERIFIED;
    assert_int_equal(summary_make(&made.result, &made.summary), 0);
    assert_int_equal(made.summary.runs, 2);
    assert_equal(made.summary.samples_per_s.maximum, 4000.0 / 3);
    assert_false(made.summary.device_known);
    assert_int_equal(made.summary.cache, RESULT_CACHE_UNVERIFIED);
    made.result.run_count = 0;
    assert_int_equal(summary_make(&made.result, &made.summary), 0);
    assert_int_equal(made.summary.runs, 0);
    char *text = table_of(&made);
    assert_non_null(text);
    free(text);
    release(&made);
}

/* Every null has its reason next to it. */
static void check_nulls(const json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    char name[128];

    if (json_is_array(value))
        json_array_foreach(value, i, member) check_nulls(member);
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        snprintf(name, sizeof name, "%s_reason", key);
        if (json_is_null(member) && !strstr(key, "_reason"))
            assert_true(json_is_string(json_object_get(value, name)));
        if (strcmp(key, "settings") != 0) /* an option not given is null */
            check_nulls(member);
    }
}

/* Every key of the document is on the page that documents it. */
static void check_documented(const json_t *value, const char *page)
{
    static const char *const suffixes[] = {"_low95", "_high95", "_min", "_max", "_reason"};
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_array(value))
        json_array_foreach(value, i, member) check_documented(member, page);
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        char name[128], quoted[160];
        snprintf(name, sizeof name, "%s", key);
        for (i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
            size_t length = strlen(name), tail = strlen(suffixes[i]);
            if (strcmp(name, "invalid_reason") != 0 && length > tail &&
                strcmp(name + length - tail, suffixes[i]) == 0)
                name[length - tail] = '\0';
        }
        snprintf(quoted, sizeof quoted, "`%s`", name);
        if (!strstr(page, quoted))
            print_error("docs/json.md does not describe %s\n", quoted);
        assert_non_null(strstr(page, quoted));
        if (strcmp(key, "settings") != 0)
            check_documented(member, page);
    }
}

static void json_is_as_documented(void **unused)
{
    const char *srcdir = getenv("srcdir");
    char path[1024], *page = NULL;
    size_t bytes;
    struct made made;

    make(&made);
    json_t *jobs = json_array();
    json_array_append_new(jobs, report_json(&made.result, &made.summary));
    json_t *document = report_json_document(jobs, NULL);
    check_nulls(document);
    const json_t *job = json_array_get(jobs, 0);
    assert_equal(load_number(job, "summary.samples_per_s"), 4000.0 / 3);
    assert_equal(load_number(job, "summary.cold_residue_percent"), 1);
    assert_equal(load_number(job, "summary.first_epoch_device_read_bytes"), 540000);
    assert_equal(load_number(job, "settings.bs_bytes"), 1 << 20);
    assert_string_equal(load_text(job, "dataset.path"), "/data/\"set\"");
    assert_true(isnan(load_number(job, "summary.drift_percent")));
    snprintf(path, sizeof path, "%s/docs/json.md", srcdir ? srcdir : ".");
    assert_int_equal(file_load(path, 1 << 20, &page, &bytes), 0);
    check_documented(document, page);
    free(page);

    /* A name that is not valid UTF-8 must not break the document. */
    snprintf(made.result.data, sizeof made.result.data, "/data/\xff\xfe");
    json_array_clear(jobs);
    json_array_append_new(jobs, report_json(&made.result, &made.summary));
    assert_string_equal(load_text(json_array_get(jobs, 0), "dataset.path"), "/data/\\xff\\xfe");
    json_decref(document);
    json_decref(jobs);
    release(&made);
}

/* An array of numbers takes one line, and the document reads back as written. */
static void json_text_is_the_document(void **unused)
{
    struct made made;
    json_error_t error;

    make(&made);
    json_t *job = report_json(&made.result, &made.summary);
    char *text = report_json_text(job, 17);
    assert_non_null(text);
    assert_contains(text, "\n      [1, 8e+06, 8e+06],\n      [2, 4.4e+06, null],\n"
                          "      [3, 1.23457e+06, 0]\n    ]");
    assert_contains(text, "\"columns\": [\"time_s\", \"read_bytes_per_s\", ");
    json_t *again = json_loads(text, 0, &error);
    assert_non_null(again);
    json_t *series = json_object_get(again, "series");
    assert_equal(load_number(series, "origin.from_page_cache_bytes"), 4e6);
    assert_true(
        json_is_null(json_object_get(json_object_get(series, "origin"), "fabric_excess_bytes")));
    json_object_del(json_object_get(job, "series"), "rows"); /* they are rounded */
    json_object_del(series, "rows");
    assert_true(json_equal(job, again));
    free(text);
    json_decref(job);
    json_decref(again);
    release(&made);
}

static char *document_of(const struct made *made)
{
    json_t *jobs = json_array();
    json_t *document = NULL;
    char *text = NULL;

    if (jobs && json_array_append_new(jobs, report_json(&made->result, &made->summary)) == 0)
        document = report_json_document(jobs, NULL);
    if (document)
        text = report_json_text(document, 17);
    json_decref(document);
    json_decref(jobs);
    return text;
}

/* Whichever allocation fails, the document is whole or there is none. */
static void json_is_whole_or_an_error(void **unused)
{
    /* Refusing each of thousands takes seconds; the same calls allocate again and again. */
    const uint64_t step = getenv("IOBENCH_LONG") ? 1 : 13;
    struct made made;
    uint64_t failures = 0;

    if (!allocations_counted)
        skip();
    make(&made);
    char *whole = document_of(&made);
    assert_non_null(whole);
    for (uint64_t k = 1, met = 1; met; k += step) {
        allocation_refused = counter_get(&allocations) + k;
        char *text = document_of(&made);
        met = counter_get(&allocations) >= allocation_refused;
        allocation_refused = 0;
        if (text)
            assert_string_equal(text, whole);
        failures += !text;
        free(text);
    }
    assert_true(failures > 100);
    free(whole);
    release(&made);
}

static void a_series_is_a_table(void **unused)
{
    struct made made;
    char *text = NULL;
    size_t bytes;

    make(&made);
    FILE *stream = open_memstream(&text, &bytes);
    report_series_csv(stream, &made.timeline);
    fclose(stream);
    assert_string_equal(text, "time_s,phases,read_bytes_per_s,from_local_bytes_per_s,"
                              "disk.vda.read_bytes_per_s,memory.free_bytes\n"
                              "1.000000,epoch 1,8000000,8000000,9000000,5\n"
                              "2.000000,epoch 1+shuffle 2,4400000,,0,5\n"
                              "3.000000,shuffle 2,1234567.89,0,0,\n");
    free(text);
    /* The first half of the epochs' time is at full rate, the second at half. */
    char spark[REPORT_SPARK_BYTES];
    setenv("LC_ALL", "C", 1);
    assert_equal(report_spark(&made.timeline, "read_bytes_per_s", spark), 8e6);
    assert_int_equal(strlen(spark), 50);
    assert_true(spark[0] == '@' && spark[49] == '+');
    setenv("LC_ALL", "en_GB.UTF-8", 1);
    assert_equal(report_spark(&made.timeline, "read_bytes_per_s", spark), 8e6);
    assert_int_equal(strlen(spark), 50 * strlen("█"));
    assert_memory_equal(spark, "█", 3);
    assert_memory_equal(spark + 49 * 3, "▅", 3);
    assert_true(report_spark(&made.timeline, "nonsense", spark) == 0);
    text = table_of(&made);
    assert_contains(text, "8.00 MB/s");
    assert_contains(text, "Sources  11.44 MiB read = 3.81 MiB page cache + 7.63 MiB local disk + ");
    free(text);
    release(&made);
}

static char *profile_of(struct made *made)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    report_profile(stream, &made->result, &made->summary, NULL);
    fclose(stream);
    return text;
}

/* 1000 samples/s of 100 bytes, 110 of them read, of 4 nodes: those of the first epochs, as the
 * trainer limited the later ones. */
static void a_profile_has_the_storage_that_limited(void **unused)
{
    struct made made;
    char *text;

    make(&made);
    made.result.nodes = 4;
    text = profile_of(&made); /* no disk of this machine */
    assert_contains(text, "scope=job\nread-bytes-per-s=1.1e+05 ");
    assert_contains(text, "client-bytes-per-s=27500 ");
    free(text);
    snprintf(made.result.environment.devices, sizeof made.result.environment.devices, "vda");
    text = profile_of(&made);
    assert_contains(text, "scope=node\nread-bytes-per-s=27500 ");
    assert_null(strstr(text, "client-bytes-per-s"));
    free(text);
    made.runs[0].cold.server.state = SERVER_UNVERIFIED;
    text = profile_of(&made);
    assert_contains(text, "scope=job\n");
    free(text);
    made.summary.cache = RESULT_CACHE_WARM;
    text = profile_of(&made);
    assert_contains(text, "doubt=the caches were not verified cold: warm\n");
    free(text);
    made.summary.cache = RESULT_CACHE_COLD;
    text = profile_of(&made);
    assert_null(strstr(text, "doubt="));
    free(text);
    result_degraded(&made.result, "only 0.0%% of the bytes left storage");
    text = profile_of(&made);
    assert_contains(text, "[data]\nsample-bytes=100\n");
    assert_contains(text, "doubt=DEGRADED: only 0.0% of the bytes left storage\nsource=");
    assert_null(strstr(text, "[storage]"));
    assert_contains(text, "# DEGRADED: only 0.0% of the bytes left storage\n");
    free(text);
    made.result.degraded_reason[0] = '\0';
    made.summary.limit = RESULT_LIMIT_PAGE_CACHE;
    text = profile_of(&made);
    assert_null(strstr(text, "[storage]"));
    assert_contains(text, "[data]\nsample-bytes=100\n");
    free(text);
    release(&made);
}

static void foreign_files_are_refused(void **unused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{\"schema\": \"iobench-result\"}",
        "{\"schema\": \"iobench-result\", \"schema_version\": 1, \"jobs\": [{}]}",
        "{\"schema\": \"iobench-result\", \"schema_version\": 2, \"jobs\": []}",
        "{\"schema\": \"iobench-result\", \"schema_version\": 2, \"jobs\": [3]}",
        "{\"schema\": \"fio\", \"schema_version\": 2, \"jobs\": [{}]}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fail_clear();
        json_t *bad = load_any("x.json", texts[i], strlen(texts[i]));
        assert_true(!bad || load_check("x.json", bad));
        json_decref(bad);
        assert_contains(fail_reason(), "x.json");
    }
    static const char good[] =
        "{\"schema\": \"iobench-result\", \"schema_version\": 2, \"jobs\": [{}]}";
    json_t *document = load_any("x.json", good, strlen(good));
    assert_int_equal(load_check("x.json", document), 0);
    json_decref(document);
}

static void sizes_are_products(void **unused)
{
    const struct sizing_basis basis = {
        .sample_bytes = 100e3, .amplification = 1.5, .node_samples_per_s = 5000};
    struct sizing_need need = sizing_of(&basis, 1000, 8, 0.5);

    assert_equal(need.samples_per_s, 4000);
    assert_equal(need.bytes_per_s, 600e6);
    assert_equal(need.bits_per_s, 4.8e9);
    assert_equal(need.nodes, 0.8);
}

static void numbers_as_people_read_them(void **unused)
{
    char text[WORDS_BYTES];

    assert_string_equal(words_count(0, text), "0");
    assert_string_equal(words_count(1281167, text), "1,281,167");
    assert_string_equal(words_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
    assert_string_equal(words_rate(0.516, text), "0.52");
    assert_string_equal(words_rate(0.004, text), "0.004");
    assert_string_equal(words_rate(0.00001, text), "1e-05");
    assert_string_equal(words_rate(0, text), "0.00");
    assert_string_equal(words_rate(9.996, text), "10.0");
    assert_string_equal(words_rate(99.96, text), "100");
    assert_string_equal(words_rate(999.6, text), "1,000");
    assert_string_equal(words_rate(NAN, text), "-");
    assert_string_equal(words_duration(999, text), "999 ns");
    assert_string_equal(words_duration(420000, text), "420 us");
    assert_string_equal(words_duration(999999999, text), "1.00 s");
    assert_int_equal(words_line("aa bb cc", 5), 5);
    assert_int_equal(words_line("aaaaaaaa bb", 5), 8);
    assert_int_equal(words_line("\u2581\u2582 \u2583 d", 4), 10); /* characters, not bytes */
    assert_int_equal(words_line("aa\nbb", 9), 2);
    assert_string_equal(words_percent(0.7612, text), "76.12%");
    assert_string_equal(words_percent(1, text), "100.0%");
}

static void long_names_have_a_line(void **unused)
{
    struct text_stream stream;
    char *text;
    size_t bytes;

    assert_int_equal(text_stream_open(&stream), 0);
    setenv("COLUMNS", "40", 1);
    words_print(stream.stream, "name", 30, "one two three\nfour");
    words_print(stream.stream, "exactly ten", 10, "one");
    unsetenv("COLUMNS");
    assert_int_equal(text_stream_take(&stream, &text, &bytes), 0);
    assert_string_equal(text, "name                          one two\n"
                              "                              three\n"
                              "                              four\n"
                              "exactly ten\n          one\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summary_adds_up),
        cmocka_unit_test(broken_runs_do_not_count),
        cmocka_unit_test(json_is_as_documented),
        cmocka_unit_test(json_text_is_the_document),
        cmocka_unit_test(json_is_whole_or_an_error),
        cmocka_unit_test(a_series_is_a_table),
        cmocka_unit_test(a_profile_has_the_storage_that_limited),
        cmocka_unit_test(foreign_files_are_refused),
        cmocka_unit_test(sizes_are_products),
        cmocka_unit_test(numbers_as_people_read_them),
        cmocka_unit_test(long_names_have_a_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
