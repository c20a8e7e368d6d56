/* SPDX-License-Identifier: Apache-2.0
 * What commands print and write of a result, whole: pages and documents of made-up results, whose
 * figures all differ, equal those of tests/golden/pages. After a wanted change
 *     tests/unit/test_pages ../tests/golden/pages
 * writes them anew; check the difference by hand. */
#include "tests/unit/folder.h"
#include "tests/unit/golden.h"

#include "base/json.h"
#include "base/option.h"
#include "cmd/checkpoint/checkpoint.h"
#include "cmd/members.h"
#include "cmd/net/report.h"
#include "cmd/line.h"
#include "cmd/shuffle/shuffle.h"
#include "cmd/size/model.h"
#include "cmd/sweep/sweep.h"
#include "cmd/train/report.h"
#include "cmd/arguments.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "pipeline/jobs/infer.h"
#include "pipeline/jobs/run.h"
#include "pipeline/result/timeline.h"
#include "readers/reader.h"
#include "report/report.h"
#include "telemetry/devices.h"
#include "telemetry/series.h"
#include "telemetry/storage.h"
#include "trainer/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MS(value) (UINT64_C(1000000) * (value))
static const uint64_t MIB = 1 << 20, GIB = 1 << 30;
static char no_file[] = "/nothing/is/here.txt";

/* Compares a document, which is freed; without what depends on the machine. */
static void assert_document(const char *name, json_t *document)
{
    assert_non_null(document);
    assert_true(json_is_string(json_object_get(document, "checksum")) ||
                !json_object_get(document, "schema"));
    if (json_array_size(json_object_get(document, "jobs")) > 0)
        json_object_del(document, "jobs"); /* as of a run */
    json_object_del(document, "checksum");
    assert_int_equal(json_object_del(document, "iobench_version") == 0,
                     json_object_get(document, "schema") != NULL);
    json_object_del(json_object_get(document, "place"), "modules");
    json_object_del(json_object_get(document, "environment"), "modules");
    char *dump = json_dumps(document, JSON_INDENT(1) | JSON_REAL_PRECISION(9)), *text;
    assert_non_null(dump);
    text = calloc(1, strlen(dump) + 4096);
    sprintf(text, "%s\n", dump);
    free(dump);
    json_decref(document);
    assert_golden(name, text);
}

/* Standard output goes to a file until page_end(). */
static int terminal;
static FILE *page;

static void page_begin(void)
{
    fflush(stdout);
    page = tmpfile();
    assert_non_null(page);
    terminal = dup(STDOUT_FILENO);
    assert_true(terminal >= 0 && dup2(fileno(page), STDOUT_FILENO) >= 0);
}

static char *page_text(void)
{
    fflush(stdout);
    assert_true(dup2(terminal, STDOUT_FILENO) >= 0);
    close(terminal);
    char *text = content(page);
    fclose(page);
    return text;
}

static void page_end(const char *name)
{
    assert_golden(name, page_text());
}

/* The page ends with the report of a run, of which the first word is compared. */
static void page_end_with_report(const char *name)
{
    char *text = page_text(), *report = strstr(text, "\niobench " PACKAGE_VERSION);

    assert_non_null(report);
    report[9] = '\0';
    assert_golden(name, text);
}

/* The page ends with a document; name: of what is before it, NULL: nothing is. */
static void page_end_with_document(const char *name, const char *document)
{
    char *text = page_text(), *begin = *text == '{' ? text : strstr(text, "\n{");

    assert_non_null(begin);
    assert_document(document, json_loads(begin, 0, NULL));
    if (name) {
        begin[1] = '\0';
        assert_golden(name, text);
    } else {
        free(text);
    }
}

/* ---- without memory ---- */

/* Each block has pages of its own, which cannot be touched once it is freed. */
enum { BLOCKS = 8192, BLOCK_BYTES = 8192 };
static char *blocks;
static unsigned block_count, block_fails; /* from which on there is none */

static void *block_take(size_t bytes)
{
    if (bytes > BLOCK_BYTES || block_count >= block_fails || block_count == BLOCKS)
        return NULL;
    char *block = blocks + (size_t)block_count++ * BLOCK_BYTES;
    assert_int_equal(mprotect(block, BLOCK_BYTES, PROT_READ | PROT_WRITE), 0);
    return block;
}

static void block_drop(void *block)
{
    if (block)
        assert_int_equal(mprotect(block, BLOCK_BYTES, PROT_NONE), 0);
}

/* Nothing that jansson freed is used, whichever block is the last. */
static void assert_fails_whole(json_t *(*make)(const void *context), const void *context)
{
    json_malloc_t allocate;
    json_free_t release;
    unsigned most = BLOCKS;

    json_get_alloc_funcs(&allocate, &release);
    blocks =
        mmap(NULL, (size_t)BLOCKS * BLOCK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(blocks, MAP_FAILED);
    json_set_alloc_funcs(block_take, block_drop);
    for (unsigned i = 0; i <= most; i++) {
        block_count = 0;
        block_fails = i == 0 ? BLOCKS : i - 1;
        assert_null(allocate(SIZE_MAX)); /* memory ran out: the document is not sealed */
        assert_null(make(context));
        if (i == 0)
            most = block_count;
        assert_in_range(most, 1, BLOCKS - 1);
    }
    json_set_alloc_funcs(allocate, release);
    munmap(blocks, (size_t)BLOCKS * BLOCK_BYTES);
}

/* ---- checkpoint ---- */

static struct environment machine(void)
{
    return (struct environment){.host = "node7",
                                .kernel = "Linux 6.8",
                                .cpu = "EPYC 7763",
                                .clock_source = "tsc",
                                .cpu_count = 12,
                                .memory_bytes = 24 * GIB,
                                .file_system = "xfs",
                                .mount_options = "rw,noatime",
                                .mount_point = "/scratch",
                                .devices = "nvme0n1 nvme1n1",
                                .sandbox = "landlock ABI 4",
                                .started = "2026-01-02T03:04:05Z",
                                .command = "iobench"};
}

/* A checkpoint of 6 GiB in `seconds`; the other times follow from it. */
static struct checkpoint_row row(uint32_t number, double seconds, bool is_read)
{
    const uint64_t ns = (uint64_t)(seconds * 1e9);
    struct checkpoint_row row = {.number = number,
                                 .bytes = 6 * GIB,
                                 .wall_ns = ns,
                                 .median_ns = ns / 2,
                                 .fastest_ns = ns / 4,
                                 .slowest = number + 1,
                                 .process_bytes = NAN,
                                 .device_bytes = NAN};

    for (uint32_t i = 1; i <= 100; i++)
        histogram_add(&row.latency_ns, (number + 1) * MS(i));
    if (is_read) {
        row.damaged = number;
        return row;
    }
    row.sync_ns = ns / 5;
    row.synced_bytes = row.bytes;
    row.durable_ns = ns + MS(500);
    row.stall_ns = ns / 10;
    row.process_bytes = (double)(row.bytes + GIB);
    row.device_bytes = (double)(row.bytes + 2 * GIB);
    return row;
}

static struct result_epoch restore_epochs[2];
static struct result_run restores[2];
static struct checkpoint_rank each[2] = {
    {.rank = 0,
     .host = "node7",
     .written = 100,
     .write_ns = MS(1500),
     .read = 300,
     .read_ns = MS(250)},
    {.rank = 1,
     .host = "node8",
     .written = 200,
     .write_ns = MS(2500),
     .read = 400,
     .read_ns = MS(750)},
};

static struct checkpoint_result checkpoint_result(struct checkpoint_row *writes,
                                                  struct checkpoint_row *reads)
{
    for (int i = 0; i < 2; i++) {
        restore_epochs[i] = (struct result_epoch){
            .device = {.known = i == 0, .bytes = 3 * GIB, .method = "disk counters"}};
        strcpy(restore_epochs[i].device.reason, i ? "no counters" : "");
        restores[i] = (struct result_run){.epoch_count = 1, .epochs = &restore_epochs[i]};
        restores[i].cold.state = i ? RESULT_CACHE_DATA_COLD : RESULT_CACHE_COLD;
        strcpy(restores[i].cold.method, "drop_caches");
        strcpy(restores[i].cold.reason, i ? "inodes may be cached" : "");
    }
    writes[0] = row(0, 3, false);
    writes[1] = row(1, 4, false);
    writes[2] = row(2, 2, false);
    reads[0] = row(1, 1.5, true);
    reads[1] = row(2, 1, true);
    return (struct checkpoint_result){
        .files = {.count = 9,
                  .ranks = 8,
                  .bytes = 6 * GIB,
                  .full_bytes = 60 * GIB,
                  .is_published = true,
                  .tensor = 2,
                  .pipeline = 4,
                  .data = 1,
                  .zero = 3},
        .ranks = 2,
        .processes = 2,
        .nodes = 1,
        .write_count = 3,
        .read_count = 2,
        .writes = writes,
        .reads = reads,
        .each = each,
        .writer_engine = "uring, O_DIRECT",
        .ceiling = {.made_per_s = 5.5 * (double)GIB, .checked_per_s = 7.25 * (double)GIB},
        .steps = 40,
        .loop_ns = MS(29000),
        .evidence = {.environment = machine(),
                     .valid = true,
                     .reader_engine = "pread",
                     .run_count = 2,
                     .runs = restores,
                     .notice_count = 1,
                     .notices = {"a notice"}}};
}

struct checkpoint_made {
    const struct checkpoint_job *job;
    const struct checkpoint_result *result;
};

static json_t *checkpoint_document(const void *context)
{
    const struct checkpoint_made *made = context;

    return checkpoint_report_json(made->job, made->result);
}

static void all_of_a_checkpoint(void **unused)
{
    const struct checkpoint_job job = {.path = "/scratch/c",
                                       .command = "iobench checkpoint",
                                       .mtbf_ns = MS(3600000),
                                       .model.model = {.name = "mine", .parameters = 1340000000},
                                       .is_single = 1,
                                       .chunk_bytes = 4 * MIB,
                                       .depth = 16,
                                       .direct = true,
                                       .sync = true,
                                       .verify = true,
                                       .is_async = true,
                                       .keep = 2,
                                       .step_ns = MS(500),
                                       .interval = 10,
                                       .rank_shift = 1,
                                       .seed = 77};
    struct checkpoint_row writes[3], reads[2];
    struct checkpoint_result result = checkpoint_result(writes, reads);
    double written = 0, read = 0;

    page_begin();
    assert_int_equal(checkpoint_report_text(&job, &result), 0);
    page_end("checkpoint.txt");
    assert_document("checkpoint.json", checkpoint_report_json(&job, &result));
    assert_fails_whole(checkpoint_document, &(struct checkpoint_made){&job, &result});
    assert_int_equal(checkpoint_report_rates(&result, &written, &read), 0);
    assert_equal(read, 5 * (double)GIB); /* the median of 4 and 6 */
    /* Without memory there is no report, rather than one without figures. */
    result.write_count = SIZE_MAX / 2;
    assert_int_equal(checkpoint_report_text(&job, &result), -ENOMEM);
    assert_null(checkpoint_report_json(&job, &result));
}

/* What was not done or is not known leaves no line, or says so. */
static void all_of_a_poor_checkpoint(void **unused)
{
    const struct checkpoint_job job = {.path = "/scratch/c",
                                       .command = "iobench checkpoint",
                                       .mtbf_ns = MS(3600000),
                                       .chunk_bytes = MIB,
                                       .depth = 1};
    struct checkpoint_row writes[3], reads[2];
    struct checkpoint_result result = checkpoint_result(writes, reads);

    result.evidence.valid = false;
    strcpy(result.evidence.invalid_reason, "a chunk is damaged");
    result.evidence.notice_count = 0;
    result.files.bytes = result.files.full_bytes;
    result.files.is_published = false;
    result.evidence.environment.devices[0] = '\0';
    result.processes = result.nodes = result.ranks = 1;
    result.write_count = 1;
    result.read_count = result.evidence.run_count = 0;
    writes[0].synced_bytes--;
    writes[0].process_bytes = writes[0].device_bytes = NAN;
    page_begin();
    checkpoint_report_text(&job, &result);
    page_end("checkpoint-unsynced.txt");
    assert_document("checkpoint-unsynced.json", checkpoint_report_json(&job, &result));

    result = checkpoint_result(writes, reads);
    strcpy(result.evidence.degraded_reason, "another process wrote");
    restore_epochs[0].device.known = false;
    strcpy(restore_epochs[0].device.reason, "loop device");
    result.files.count = 0;
    result.write_count = 0;
    page_begin();
    checkpoint_report_text(&job, &result);
    page_end("checkpoint-read.txt");
    assert_document("checkpoint-read.json", checkpoint_report_json(&job, &result));

    result = checkpoint_result(writes, reads);
    writes[1].device_bytes = (double)(writes[1].bytes - 1); /* the others are durable */
    result.read_count = result.evidence.run_count = 0;
    page_begin();
    checkpoint_report_text(&job, &result);
    page_end("checkpoint-unverified.txt");

    /* Each alone: none stands for another. */
    page_begin();
    for (int i = 0; i < 5; i++) {
        const struct checkpoint_job flags = {.command = "",
                                             .mtbf_ns = MS(1),
                                             .is_single = i == 0,
                                             .direct = i == 1,
                                             .sync = i == 2,
                                             .verify = i == 3,
                                             .is_async = i == 4};
        checkpoint_report_text(&flags, &result);
        json_t *document = checkpoint_report_json(&flags, &result);
        json_dumpf(json_object_get(document, "settings"), stdout, 0);
        json_decref(document);
    }
    page_end("checkpoint-flags.txt");
}

/* ---- net ---- */

static struct stats_summary figure(double median)
{
    return (struct stats_summary){.count = 5,
                                  .minimum = 0.5 * median,
                                  .median = median,
                                  .mean = median,
                                  .maximum = 3 * median,
                                  .low = 0.75 * median,
                                  .high = 1.5 * median,
                                  .coverage = 0.95};
}

/* Two nodes of two ranks; rank 3 sends slowly to rank 0. */
static void survey_make(struct fabric_survey *survey, uint32_t *nodes, double *rates,
                        double *latencies)
{
    *survey = (struct fabric_survey){.other = 2,
                                     .size_count = 2,
                                     .has_sizes = true,
                                     .has_collectives = true,
                                     .has_pairs = true,
                                     .matrix = {.ranks = 4,
                                                .nodes = 2,
                                                .node_of = nodes,
                                                .bytes_per_s = rates,
                                                .latency_s = latencies},
                                     .verified_bytes = 5 * GIB,
                                     .transport = "verbs on mlx5_0"};
    for (uint32_t from = 0; from < 4; from++) {
        nodes[from] = from / 2;
        for (uint32_t to = 0; to < 4; to++) {
            const bool within = from / 2 == to / 2;
            rates[from * 4 + to] = from == to ? NAN : within ? 40e9 : 11e9 + 1e8 * from + 1e7 * to;
            latencies[from * 4 + to] = from == to ? NAN : within ? 1e-6 : 4e-6 + 1e-7 * from;
        }
    }
    rates[3 * 4 + 0] = 2e9;
    for (uint32_t i = 0; i < 2; i++) {
        survey->sizes[i].bytes = 1024 << (10 * i);
        survey->collectives[i].bytes = 4096 << (10 * i);
        for (int kind = 0; kind < PAIR_KINDS; kind++)
            survey->sizes[i].pair[kind] =
                figure(kind == PAIR_LATENCY ? 2.5e-6 * (i + 1) : 1e9 * (kind + 1) + 1e6 * i);
        for (int kind = 0; kind < COLLECTIVES; kind++)
            survey->collectives[i].seconds[kind] = figure(1e-5 * (kind + 1) + 1e-3 * i);
    }
    survey->sizes[1].pair[PAIR_BACK].high = 9e9; /* wider than the figure */
    survey->sizes[1].pair[PAIR_FORTH].low = survey->sizes[1].pair[PAIR_FORTH].high = NAN;
}

static const struct net_beside_settings together = {.reads = "--data set --reader pread",
                                                    .network = "resnet50",
                                                    .halves = true,
                                                    .step_ns = MS(150),
                                                    .rounds = 3};

/* The exchange takes 1.25 of its time beside reads, and reads 1.5 of theirs. */
static void rounds_make(struct net_round *rounds)
{
    for (uint64_t i = 0; i < 3; i++) {
        rounds[i].exchange[NET_STAGE_EXCHANGE] =
            (struct rhythm_figures){20, 4.0 + 0.1 * (double)i, 0.4, 3};
        rounds[i].exchange[NET_STAGE_BOTH] =
            (struct rhythm_figures){10 + i, (10.0 + (double)i) * 0.25, 0.625, 2};
        rounds[i].wall_s[NET_STAGE_READS] = 2;
        rounds[i].wall_s[NET_STAGE_BOTH] = 3 + 0.2 * (double)i;
        rounds[i].samples[NET_STAGE_READS] = rounds[i].samples[NET_STAGE_BOTH] = 1000;
        rounds[i].record_bytes[NET_STAGE_READS] = 1e8;
        rounds[i].record_bytes[NET_STAGE_BOTH] = 1.5e8;
        rounds[i].request_bytes[NET_STAGE_READS] = 1.25e8 + (double)i;
        rounds[i].request_bytes[NET_STAGE_BOTH] = 2e8;
    }
}

static struct timeline *ports_make(double share)
{
    struct timeline *timeline = timeline_blank(3, 2, 4);
    static const char *const keys[] = {"cpu_percent", "fabric_receive_bytes_per_s",
                                       "fabric_send_bytes_per_s"};

    assert_non_null(timeline);
    timeline->interval_s = 2;
    timeline->column_count = timeline->figure_count = 3;
    timeline->row_count = 2;
    for (uint32_t i = 0; i < 3; i++)
        strcpy(timeline->keys[i], keys[i]);
    for (uint64_t i = 0; i < 2; i++) {
        double *row = timeline_row(timeline, i);
        row[0] = 2 * (double)(i + 1);
        row[1] = 50;
        row[2] = 3e9 + 1e9 * (double)i;
        row[3] = 2e9;
    }
    timeline->phase_count = 4;
    for (uint32_t i = 0; i < 4; i++) {
        struct timeline_phase *phase = &timeline->phases[i];
        strcpy(phase->name, net_stage_names[i % NET_STAGES]);
        phase->from_s = i;
        phase->to_s = i + 1;
        phase->provenance = (struct provenance){.received = 1e8 * (i + 1),
                                                .sent = i == 1 ? 0 : 1.25e8,
                                                .excess = i == 1   ? 3.75e8 * share
                                                          : i == 2 ? 6e8 * share
                                                                   : -2e7,
                                                .gradients = 5e7 * (i + 1)};
    }
    return timeline;
}

struct fabric_made {
    const struct net_asked *asked;
    const struct fabric_survey *survey;
};

static json_t *fabric_document(const void *context)
{
    const struct fabric_made *made = context;

    return net_report_json(made->asked, made->survey);
}

static void all_of_a_fabric(void **unused)
{
    const struct survey_settings settings = {
        .pair_bytes = 4 * MIB, .verify = true, .repeats = 5, .repeat_ns = MS(20), .seed = 9};
    struct ranks_peer peers[4] = {
        {"a", 0, true, 0, 0}, {"a", 0, false, 0, 0}, {"b", 1, true, 0, 0}, {"b", 1, false, 0, 0}};
    const struct ranks ranks = {.place = {.ranks = 4, .nodes = 2}, .peers = peers};
    static struct fabric_survey survey;
    static struct net_beside beside;
    struct net_round rounds[3] = {0};
    uint32_t nodes[4];
    double rates[16], latencies[16];
    struct net_asked asked = {.settings = &settings,
                              .ranks = &ranks,
                              .transport = "auto",
                              .command = "iobench net",
                              .verdict = {.environment = machine(), .valid = true},
                              .beside = &beside,
                              .timeline = ports_make(0.9)};

    survey_make(&survey, nodes, rates, latencies);
    rounds_make(rounds);
    beside.settings = together;
    beside.rounds = rounds;
    beside.ranks = 4;
    beside.rhythm.bytes = 51 * MIB;
    beside.rhythm.count = 4;
    strcpy(beside.cache, "cold");
    page_begin();
    assert_int_equal(net_report_text(&asked, &survey), 0);
    page_end("net.txt");
    assert_document("net.json", net_report_json(&asked, &survey));
    assert_fails_whole(fabric_document, &(struct fabric_made){&asked, &survey});
    /* 4 MiB in 1.01 ms; in a ring of 4 each byte passes 2 * 3 / 4 times. */
    assert_equal(net_report_all_reduce(&survey),
                 4194304 / survey.collectives[1].seconds[COLLECTIVE_ALL_REDUCE].median * 1.5);
    strcpy(asked.timeline->keys[2], "none"); /* what was sent is not known */
    asked.beside = NULL;
    survey.has_sizes = survey.has_collectives = false;
    page_begin();
    assert_int_equal(net_report_text(&asked, &survey), 0);
    page_end("net-pairs.txt");
    asked.beside = &beside;
    timeline_destroy(asked.timeline);

    /* Without the rest: local disks, few steps, one node, nothing verified. */
    const struct survey_settings plain = {.pair_bytes = 64, .repeats = 3};
    struct timeline *local = ports_make(0.3);
    asked.settings = &plain;
    asked.verdict.notice_count = 1;
    strcpy(asked.verdict.notices[0], "a notice");
    strcpy(asked.verdict.degraded_reason, "another process");
    asked.timeline = NULL;
    survey.is_alone = true;
    survey.matrix.nodes = 1;
    memset(nodes, 0, sizeof nodes);
    beside.settings.halves = false;
    beside.cache[0] = '\0';
    beside.settings.rounds = 2;
    rounds[1].exchange[NET_STAGE_BOTH].steps = 9;
    page_begin();
    assert_int_equal(net_report_text(&asked, &survey), 0);
    net_beside_text(&beside, local);
    page_end("net-plain.txt");
    assert_document("net-plain.json", net_report_json(&asked, &survey));
    assert_document("net-local.json", net_beside_json(&beside, local));
    assert_true(isnan(net_report_all_reduce(&survey)));
    /* Without memory to judge them, nobody is told that no link stands out. */
    survey.matrix.ranks = UINT32_MAX;
    assert_int_equal(net_report_text(&asked, &survey), -ENOMEM);
    assert_null(net_report_json(&asked, &survey));
    timeline_destroy(local);
}

/* ---- run --beside ---- */

static json_t *member(const char *label, double first, double second, double third)
{
    return json_pack("{s:s, s:[{s:[{s:f, s:i}, {s:f, s:i}]}, {s:[{s:f, s:i}]}, {s:[{s:f, s:i}]}]}",
                     "label", label, "runs", "epochs", "wall_s", first / 4, "samples", 300,
                     "wall_s", first * 3 / 4, "samples", 700, "epochs", "wall_s", second, "samples",
                     1000, "epochs", "wall_s", third, "samples", 1000);
}

static void all_of_two_jobs(void **unused)
{
    json_t *const members[BESIDE_MEMBERS] = {
        member("first, of two, alone", 2, 2.5, 3), member("second, alone", 4, 4.5, 4),
        member("first, beside", 3, 3.5, 4.5), member("second, beside", 5, 6, 5.5)};
    json_t *beside = beside_json(members, true);

    assert_non_null(beside);
    page_begin();
    beside_text(stdout, beside);
    page_end("beside.txt");
    assert_document("beside.json", beside);
    for (int i = 0; i < BESIDE_MEMBERS; i++) {
        json_array_remove(json_object_get(members[i], "runs"), 2);
        json_array_remove(json_object_get(members[i], "runs"), 1);
    }
    beside = beside_json(members, false);
    assert_non_null(beside);
    page_begin();
    beside_text(stdout, beside);
    page_end("beside-once.txt");
    json_decref(beside);
    json_array_clear(json_object_get(members[3], "runs"));
    assert_null(beside_json(members, false));
    assert_reason("the jobs did not make the same runs");
    for (int i = 0; i < BESIDE_MEMBERS; i++)
        json_decref(members[i]);
}

/* ---- run ---- */

enum { RUNS_MADE = 3, RANKS_MADE = 3 };
static struct result_run made_runs[RUNS_MADE];
static struct result_epoch made_epochs[RUNS_MADE][2];
static struct result_rank made_ranks[RUNS_MADE][RANKS_MADE];
static struct result_node made_nodes[RUNS_MADE][2];

/* Give each figure of an epoch that has a row a value of its own. */
static void number_epoch(struct result_epoch *epoch, uint64_t number, uint64_t salt)
{
    *epoch = (struct result_epoch){.device = {.known = true, .method = "/proc/self/io read_bytes"}};
    for (size_t i = 0; i < figures_of_epoch_count; i++) {
        const struct figure *row = &figures_of_epoch[i];
        void *at = (char *)epoch + row->offset;
        if (row->type == FIGURE_COUNT)
            *(uint64_t *)at = 100000 + 1100 * i + 10 * salt;
        else if (row->type == FIGURE_TIME)
            *(uint64_t *)at = MS(20 + i) + MS(10) * salt;
        else if (row->type == FIGURE_REAL)
            *(double *)at = 0.25 * (double)i + (double)salt;
    }
    epoch->epoch = number;
    epoch->samples = 4000 + 10 * salt;
    epoch->skipped = salt == 26 ? 3 : 0;
    epoch->batches = 63;
    epoch->wall_ns = MS(2000 + 30 * salt);
    epoch->compute_ns = MS(1500);
    epoch->requests = 210 + salt;
    epoch->record_bytes = 400000000 + 1000 * salt;
    epoch->request_bytes = 410000000 + 1000 * salt;
    epoch->device.bytes = 405000000 + 1000 * salt;
    epoch->merged = 0;
    epoch->digest_sum = 7, epoch->digest_xor = 9;
}

static void make_result(struct result *result, uint32_t ranks, enum result_cache state)
{
    for (uint64_t i = 0; i < RUNS_MADE; i++) {
        struct result_run *run = &made_runs[i];
        *run = (struct result_run){.number = i,
                                   .turn = 2 * i,
                                   .epoch_count = 2,
                                   .epochs_run = 2,
                                   .row_epochs = 1,
                                   .epochs = made_epochs[i],
                                   .valid = true,
                                   .memory_peak_bytes = (20 + i) * MIB,
                                   .read_errors = i == 2,
                                   .short_reads = 2 * (i == 2),
                                   .cold = {.state = state,
                                            .residue_percent = 0.25 * (double)i,
                                            .total_bytes = 900 * MIB,
                                            .read_bytes = 400 * MIB,
                                            .resident_bytes = i * MIB,
                                            .drop_ns = MS(31 + i),
                                            .method = "drop_caches"},
                                   .rank_count = ranks > 1 ? ranks : 0,
                                   .node_count = ranks > 1 ? 2 : 0,
                                   .ranks = made_ranks[i],
                                   .nodes = made_nodes[i]};
        for (uint64_t k = 0; k < 2; k++)
            number_epoch(&made_epochs[i][k], k, 5 * i + k);
        for (uint64_t k = 1; k <= 100; k++) {
            histogram_add(&run->read_latency_ns, 10000 * k * (i + 1));
            histogram_add(&run->epoch_latency_ns[k % 2], 10000 * k * (i + 1));
        }
        for (uint32_t r = 0; r < RANKS_MADE; r++) {
            struct result_rank *rank = &made_ranks[i][r];
            *rank = (struct result_rank){.rank = r,
                                         .node = r / 2,
                                         .leads = r != 1,
                                         .read_p50_ns = MS(1 + r),
                                         .read_p99_ns = MS(11 + r),
                                         .read_max_ns = MS(21 + r)};
            snprintf(rank->host, sizeof rank->host, "node%u", r / 2);
            number_epoch(&rank->total, 0, 20 + 3 * r + i);
            rank->total.compute_ns += r == 1 ? MS(400) : 0;
        }
        for (uint32_t n = 0; n < 2; n++) {
            made_nodes[i][n] = (struct result_node){.ranks = n ? 1 : 2, .cold = run->cold};
            snprintf(made_nodes[i][n].host, sizeof made_nodes[i][n].host, "node%u", n);
        }
    }
    result->ranks = ranks;
    result->nodes = ranks > 1 ? 2 : 1;
}

/* All figures of a run; then each cause of its speed and each state of the caches, in short. */
static void all_of_a_run(void **unused)
{
    static struct job job;
    static struct result result;
    static struct summary summary;

    assert_int_equal(option_defaults(job_options, &job), 0);
    job.epochs = 2;
    free(job.trainer);
    job.trainer = strdup("replay:h200");
    job.output.label = strdup("a \"b\"");
    result = (struct result){.job = &job,
                             .environment = machine(),
                             .session = {.id = "a", .jobs = 1, .turns = 1},
                             .data = "/data/set",
                             .format = "recordio",
                             .shards = 4,
                             .records = 4096,
                             .data_bytes = 900 * MIB,
                             .record_bytes_total = 400 * MIB,
                             .data_identity = 77,
                             .decodes = true,
                             .reader_engine = "io_uring",
                             .decoder_engine = "jpeg",
                             .shuffle = "epoch",
                             .iodepth = 32,
                             .threads = 3,
                             .memory_bytes = 128 * MIB,
                             .memory_needed_bytes = 256 * MIB,
                             .memory_available_bytes = 32 * GIB,
                             .slots = 5,
                             .memory_before_bytes = 50 * MIB,
                             .memory_during_bytes = 190 * MIB,
                             .ceiling_samples_per_s = 12345,
                             .au_calibration_percent = 98.5,
                             .run_count = RUNS_MADE,
                             .runs = made_runs,
                             .timeline_reason = "not asked for",
                             .valid = true};
    for (uint32_t ranks = 1; ranks <= RANKS_MADE; ranks += 2) {
        make_result(&result, ranks, RESULT_CACHE_COLD);
        assert_int_equal(summary_make(&result, &summary), 0);
        page_begin();
        report_text(stdout, &result, &summary, true);
        report_plan(stdout, &result);
        report_csv(stdout, &result, true);
        report_profile(stdout, &result, &summary, NULL);
        page_end(ranks > 1 ? "run-ranks.txt" : "run.txt");
        json_t *document = report_json(&result, &summary);
        if (ranks > 1)
            json_object_clear(json_object_get(document, "settings")); /* as of one */
        assert_document(ranks > 1 ? "run-ranks.json" : "run.json", document);
        result_notice(&result, "a notice of %u", ranks);
        result.ceiling_samples_per_s = 0;
    }
    page_begin();
    for (int i = 0; i <= RESULT_LIMIT_HARNESS; i++) {
        make_result(&result, 1, RESULT_CACHE_COLD + (i + 1) % (RESULT_CACHE_WARM + 1));
        for (int k = 0; k < 2 * RUNS_MADE; k++)
            made_epochs[k / 2][k % 2].limit = (enum result_limit)i;
        made_runs[1].valid = i % 3 != 1;
        strcpy(made_runs[1].invalid_reason, i % 3 == 1 ? "a record differs" : "");
        strcpy(result.degraded_reason, i % 2 ? "another process read" : "");
        made_epochs[i % 3][1].skipped = i == 8 ? 2 : 0;
        made_epochs[1][0].device.known = i != 4;
        job.cold.drop_caches = i % 2 ? JOB_DROP_YES : JOB_DROP_NO;
        assert_int_equal(summary_make(&result, &summary), 0);
        if (i == RESULT_LIMIT_HARNESS)
            result_invalid(&result, "run 2: an \"invariant\"");
        result.data_was_made = i % 4 == 3;
        report_text(stdout, &result, &summary, false);
        report_csv(stdout, &result, false);
    }
    page_end("run-limits.txt");
    option_release(job_options, &job);
}

/* ---- the line of a run that is under way ---- */

static void all_of_a_progress(void **unused)
{
    struct job job = {.epochs = 1, .cold.drop_caches = JOB_DROP_NO};
    struct line line = {.shown = true};
    struct run_progress now[] = {
        {&job, RUN_INDEX, 0, 0, 0, 0, 0, MS(2600)},
        {&job, RUN_INDEX, 0, 0, 3, 4, 0, MS(7000)},
        {&job, RUN_DROP, 0, 0, 0, 0, 0, MS(5000)},
        {&job, RUN_CALIBRATE, 0, 0, 1, 3, 0, MS(1000)},
        {&job, RUN_EPOCH, 2, 4, 0, 100, 0, MS(900)},
        {&job, RUN_EPOCH, 2, 4, 30, 100, 7 * MIB, MS(2000)},
        {&job, RUN_EPOCH, 2, 4, 1, 100000, 7, MS(4000)},
        {&job, RUN_EPOCH, 2, 4, 9, 8, 7, MS(900000)},
        {&job, RUN_DONE, 2, 4, 100, 100, 0, 0},
    };

    page_begin();
    const int other = dup(STDERR_FILENO);
    assert_true(other >= 0 && dup2(STDOUT_FILENO, STDERR_FILENO) >= 0);
    for (size_t i = 0; i < 2 * sizeof now / sizeof *now; i++) {
        progress_show(&line, &now[i / 2]); /* the same line is not shown again */
        if (i == sizeof now / sizeof *now)
            job = (struct job){.epochs = 6, .runs = 5, .cold.drop_caches = JOB_DROP_YES};
    }
    for (size_t i = 0; i < sizeof now / sizeof *now; i++)
        progress_show(&line, &now[i]);
    line_clear(&line);
    assert_true(dup2(other, STDERR_FILENO) >= 0);
    close(other);
    page_end("progress.txt");
}

/* ---- series ---- */

static struct timeline *series_make(double salt)
{
    static const char *const keys[] = {"read_bytes_per_s", "from_local_bytes_per_s",
                                       "from_fabric_bytes_per_s", "a:b"};
    static const char *const names[] = {"index", "epoch", "epoch"};
    struct timeline *timeline = timeline_blank(4, 3, 3);

    assert_non_null(timeline);
    timeline->start_unix_ns = UINT64_C(1700000000500000000);
    timeline->start_monotonic_ns = (uint64_t)(MS(5250) + salt);
    timeline->clock_step_s = 0.25 + salt;
    timeline->interval_s = 2 + salt;
    timeline->begin_s = salt / 2;
    timeline->row_count = timeline->phase_count = 3;
    timeline->samples = 99, timeline->late = 7, timeline->phases_lost = 11;
    timeline->cpu_percent = 1.5 + salt;
    timeline->absent_count = 1;
    strcpy(timeline->absent[0], "gpu: there is none");
    for (uint32_t i = 0; i < 4; i++)
        strcpy(timeline->keys[i], keys[i]);
    for (uint64_t i = 0; i < 3; i++) {
        double *row = timeline_row(timeline, i);
        row[0] = (double)(2 * i + 1) + salt;
        for (int k = 1; k <= 4; k++)
            row[k] = i == 1 && k == 3 ? NAN : 1e6 * (salt + (double)(10 * i) + k);
        struct timeline_phase *phase = &timeline->phases[i];
        *phase = (struct timeline_phase){
            .run = i == 2, .number = i, .from_s = 1.5 * (double)i, .to_s = 2.0 * (double)i + 1};
        strcpy(phase->name, names[i]);
        for (int k = 0; k < PROVENANCE_PARTS; k++)
            *provenance_part(&phase->provenance, k) = 1e7 * (double)(10 * i + 1) + 1e6 * (k + salt);
        phase->provenance.witness = (enum provenance_witness)i;
    }
    for (int k = 0; k < PROVENANCE_PARTS; k++)
        *provenance_part(&timeline->provenance, k) = 1e7 * (1 << k) + 1e6 * salt;
    timeline->provenance.witness = PROVENANCE_DISK;
    return timeline;
}

/* Each file is read back and written again. */
static void all_of_a_series(void **unused)
{
    enum { NODES = 18 };
    struct timeline *timeline = series_make(0);

    page_begin();
    report_timeline_text(stdout, timeline);
    timeline->provenance.excess = -9e6;
    timeline->provenance.gradients = 0;
    report_timeline_text(stdout, timeline);
    timeline->provenance.read = NAN;
    timeline->provenance.fabric = -1;
    report_timeline_text(stdout, timeline);
    timeline->nodes = calloc(NODES, sizeof *timeline->nodes);
    assert_non_null(timeline->nodes);
    for (uint32_t i = 0; i < NODES; i++) {
        struct timeline_node *node = &timeline->nodes[timeline->node_count++];
        *node = (struct timeline_node){.clock_offset_s = i == 9 ? -0.75 : 0.01 * i,
                                       .clock_uncertainty_s = i == 11 ? 0.005 : 1e-6 * i,
                                       .clock_drift_s = 1e-3 * i,
                                       .timeline = series_make(i / 8.0)};
        sprintf(node->host, "node,%u", i / 2 * 2);
        node->timeline->provenance.sent = i == 3 ? NAN : node->timeline->provenance.sent;
    }
    report_timeline_text(stdout, timeline);
    timeline->node_count = 2;
    report_timeline_text(stdout, timeline);
    report_series_csv(stdout, timeline);
    char *csv = page_text(), *table = strstr(csv, "time_s,");
    assert_non_null(table);
    page_begin();
    fputs(csv, stdout);
    struct timeline *read = report_series_load("page", table);
    assert_non_null(read);
    report_series_csv(stdout, read);
    timeline_destroy(read);
    free(csv);
    page_end("series.txt");
    json_t *document = report_timeline(timeline);
    for (int i = 0; i < 2; i++) {
        read = report_timeline_load("page", document);
        assert_non_null(read);
        assert_document("series.json", document);
        document = report_timeline(read);
        timeline_destroy(read);
    }
    json_decref(document);
    timeline->node_count = NODES;
    timeline_destroy(timeline);
}

/* ---- train ---- */

static void all_of_a_training(void **unused)
{
    struct ranks ranks = ranks_alone();
    static struct train_job job;
    static struct train_result result;
    struct train_epoch epochs[2] = {{.io = {.epoch = 4,
                                            .samples = 2000,
                                            .batches = 20,
                                            .record_bytes = 4000000,
                                            .request_bytes = 4100000,
                                            .requests = 41,
                                            .wall_ns = MS(10000),
                                            .wait_ns = MS(1000),
                                            .upload_ns = MS(500),
                                            .copy_ns = MS(600),
                                            .compute_ns = MS(6000),
                                            .exchange_ns = MS(2000),
                                            .update_ns = MS(250),
                                            .limit = RESULT_LIMIT_TRAINER},
                                     .loss = 2.5,
                                     .accuracy = 0.375,
                                     .rate = 0.1,
                                     .samples_per_s = 200,
                                     .elapsed_ns = MS(10000),
                                     .ranks = {.ranks = 1, .nodes = 1}},
                                    {.io = {.epoch = 5,
                                            .samples = 2100,
                                            .batches = 21,
                                            .record_bytes = 4200000,
                                            .request_bytes = 4300000,
                                            .requests = 43,
                                            .wall_ns = MS(8000),
                                            .wait_ns = MS(4000),
                                            .compute_ns = MS(3000),
                                            .limit = RESULT_LIMIT_STORAGE},
                                     .loss = 1.25,
                                     .accuracy = 0.5,
                                     .rate = 0.05,
                                     .evaluated = true,
                                     .evaluation_loss = 1.5,
                                     .top1 = 0.625,
                                     .top5 = 0.875,
                                     .evaluation_ns = MS(1500),
                                     .samples_per_s = 262.5,
                                     .elapsed_ns = MS(19500),
                                     .ranks = {.ranks = 1, .nodes = 1}}};
    struct result_run run = {.valid = true, .epochs_run = 2, .epoch_count = 2};
    struct result_epoch rows[2] = {epochs[0].io, epochs[1].io};

    run.epochs = rows;
    assert_int_equal(option_defaults(job_options, &job.job), 0);
    job.job.batch_size = 100;
    job.job.epochs = 2;
    job.training.network = network_find("resnet50");
    job.training.side = 224;
    job.training.classes = 1000;
    job.target = 0.6;
    job.ranks = &ranks;
    job.initial_weights = "in.safetensors";
    result = (struct train_result){
        .recipe = {.kind = BACKEND_LARS,
                   .rate = 3.2,
                   .steps = 5000,
                   .warmup_steps = 500,
                   .momentum = 0.9,
                   .weight_decay = 1e-4,
                   .label_smoothing = 0.1,
                   .clip_norm = 2,
                   .decays_fc_bias = true},
        .accumulate = 4,
        .zero_gammas = 16,
        .cost = {.parameters = 25557032, .forward_macs = 4089184256},
        .records = 2050,
        .evaluation_records = 500,
        .epoch_count = 1,
        .epochs = epochs,
        .backend = "cpu",
        .precision = "bf16",
        .exchange = "mpi",
        .wire = "fp16",
        .number_bytes = 2,
        .activation_bytes = 85 * MIB,
        .result = {.job = &job.job,
                   .environment = machine(),
                   .data = "/data/set",
                   .format = "tar",
                   .shards = 3,
                   .records = 2050,
                   .data_bytes = 4200000,
                   .record_bytes_total = 4100000,
                   .reader_engine = "pread",
                   .decoder_engine = "jpeg",
                   .shuffle = "full",
                   .iodepth = 8,
                   .threads = 2,
                   .ranks = 1,
                   .nodes = 1,
                   .memory_bytes = 64 * MIB,
                   .memory_before_bytes = 10 * MIB,
                   .memory_during_bytes = 90 * MIB,
                   .trainer_memory = {.device_bytes = 7, .batch_bytes = 3, .pinned_bytes = 2},
                   .timeline_reason = "--sample-interval 0",
                   .run_count = 1,
                   .runs = &run,
                   .valid = true}};
    page_begin();
    train_report_epoch("resnet50", &result, &epochs[0]);
    result.epoch_count = 2;
    train_report_epoch("resnet50", &result, &epochs[1]);
    result.reached = true;
    result.reached_ns = MS(19000);
    assert_int_equal(train_report_end(&job, &result), 0);
    page_end_with_report("train.txt");

    job.job.output.csv = strdup("-");
    page_begin();
    assert_int_equal(train_report_end(&job, &result), 0);
    page_end("train.csv");
    free(job.job.output.csv);
    job.job.output.csv = NULL;
    job.job.output.json = strdup("-");
    page_begin();
    assert_int_equal(train_report_end(&job, &result), 0);
    page_end_with_document(NULL, "train.json");
    free(job.job.output.json);
    job.job.output.json = NULL;
    job.job.output.profile = strdup("-");
    page_begin();
    assert_int_equal(train_report_end(&job, &result), 0);
    page_end("train.ini");

    /* One rank, plain SGD, the target missed; not complete. */
    free(job.job.output.profile);
    job.job.output.profile = NULL;
    result.exchange[0] = '\0';
    result.accumulate = 1;
    result.reached = false;
    result.epoch_count = 1;
    strcpy(result.result.degraded_reason, "another process");
    page_begin();
    train_report_epoch("resnet50", &result, &epochs[1]);
    assert_int_equal(train_report_end(&job, &result), 1);
    page_end_with_report("train-missed.txt");
    job.job.output.series = strdup("-");
    assert_int_not_equal(train_report_end(&job, &result), 0);
    assert_reason("--series -: no samples: --sample-interval 0");
    result.result.timeline = ports_make(1);
    page_begin();
    assert_int_equal(train_report_end(&job, &result), 1);
    page_end("train-series.csv");
    timeline_destroy(result.result.timeline);
    result.result.timeline = NULL;
    char **const files[] = {&job.job.output.series, &job.job.output.csv, &job.job.output.json};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        free(job.job.output.series);
        job.job.output.series = NULL;
        *files[i] = strdup(no_file);
        page_begin();
        assert_true(train_report_end(&job, &result) < 0);
        free(page_text());
        free(*files[i]);
        *files[i] = NULL;
    }
    option_release(job_options, &job.job);
}

/* ---- shuffle ---- */

static void all_of_orders(void **unused)
{
    struct shuffle_settings settings = {.job.batch_size = 32, .measure = true, .runs = 3};
    struct catalog catalog = {
        .record_count = 12000, .shard_count = 24, .record_bytes_total = 5 * GIB};
    struct shuffle_row rows[4] = {
        {.order = "none", .ranks = 1, .reads = {.window = 4, .read_bytes = MIB}},
        {.order = "buffer:64", .ranks = 1, .reads = {.window = 4, .read_bytes = MIB}},
        {.order = "full", .ranks = 1, .reads = {.window = 4, .read_bytes = MIB}},
        {.order = "shards", .ranks = 2, .partition = PLAN_SHARDS, .refused = "too few shards"}};
    const struct survey survey = {
        .settings = &settings, .catalog = &catalog, .classes = 10, .rows = rows, .row_count = 4};
    char csv[64], *text, standard_output[] = "-";

    for (uint32_t i = 0; i < 3; i++) {
        struct quality *quality = &rows[i].quality;
        struct shuffle_speed *speed = &rows[i].speed;
        *quality = (struct quality){.labels_per_batch = 3 + 3 * i,
                                    .labels_at_random = 8,
                                    .shards_per_batch = 2 + i,
                                    .shards_at_random = 17.5,
                                    .same_label = 0.5 - 0.125 * i,
                                    .same_label_at_random = 0.1,
                                    .retention = i ? 0.25 * i : NAN,
                                    .missing = 1000 * i,
                                    .repeated = 2000 * i,
                                    .draws = 12000 + i,
                                    .draws_least = 11 + i,
                                    .draws_most = 21 + i,
                                    .reads = 31 + i,
                                    .seeks = 41 + i,
                                    .amplification = 1.25 + i,
                                    .bytes_per_read = 2048 * (i + 1),
                                    .distance_bytes = 51 + i,
                                    .buffer_bytes = MIB * (i + 1),
                                    .slots = 61 + i,
                                    .state_bytes = 71 + i,
                                    .begin_ns = 81 + i};
        speed->runs = 3;
        speed->cold_runs = 3 - i % 2;
        for (uint32_t k = 0; k < 3; k++) {
            speed->bytes_per_s[k] = (double)MIB * (100 - 20 * i + 5 * k);
            speed->samples_per_s[k] = 1000 - 200 * i + 50 * k;
        }
        speed->bytes = stats_summarise(speed->bytes_per_s, 3);
        speed->samples = stats_summarise(speed->samples_per_s, 3);
        speed->on_front = i != 1;
        strcpy(speed->warm_reason, i == 1 ? "5% were resident" : "");
    }
    page_begin();
    shuffle_print_set(&survey);
    for (int i = 0; i < 4; i++) {
        if (i == 0 || i == 3)
            shuffle_print_heading(&rows[i]);
        shuffle_print_row(&rows[i]);
    }
    shuffle_print_legend(&survey);
    shuffle_print_speeds(&survey);
    settings.runs = 1;
    strcpy(rows[2].speed.refused, "no memory");
    shuffle_print_speeds(&survey);
    settings.json = standard_output;
    assert_int_equal(shuffle_write_files(&survey), 0);
    page_end("shuffle.txt");

    snprintf(csv, sizeof csv, "/tmp/pages-%d.csv", (int)getpid());
    settings.json = NULL;
    settings.csv = csv;
    assert_int_equal(shuffle_write_files(&survey), 0);
    FILE *file = fopen(csv, "r");
    assert_non_null(file);
    text = content(file);
    fclose(file);
    remove(csv);
    assert_golden("shuffle.csv", text);
    settings.csv = no_file;
    assert_int_not_equal(shuffle_write_files(&survey), 0);
    settings.csv = NULL;
    settings.json = no_file;
    assert_int_not_equal(shuffle_write_files(&survey), 0);
}

/* ---- sweep ---- */

static void all_of_a_sweep(void **unused)
{
    enum { CELLS = 6, ROUNDS = 3 };
    static const struct option_spec options[] = {
        {"decode-threads", 0, OPTION_COUNT, 0, .summary = ""},
        {"bs", 0, OPTION_SIZE, 0, .summary = ""},
        {0},
    };
    char standard_output[] = "-", folder[] = "/out";
    struct sweep_settings settings = {.json = standard_output, .order_seed = 11};
    const struct command command = {.name = "run"};
    const struct invocation invocation = {.command = &command};
    const struct sweep_target target = {.command = &command};
    static struct sweep_figures figures[CELLS * ROUNDS];
    struct sweep sweep = {.invocation = &invocation,
                          .settings = &settings,
                          .target = &target,
                          .folder.path = folder,
                          .fingerprint = "0000000000000abc"};

    assert_int_equal(sweep_add(&sweep.plan, "threads", &options[0], NULL, "1,100000"), 0);
    assert_int_equal(sweep_add(&sweep.plan, "ranks", NULL, NULL, "1,2,4"), 0);
    assert_int_equal(sweep_add(&sweep.plan, "bs", &options[1], NULL, "64k"), 0);
    assert_int_equal(sweep_count(&sweep.plan), 0);
    assert_int_equal(sweep.plan.cells, CELLS);
    sweep.table = (struct sweep_table){&sweep.plan, ROUNDS, figures};
    for (uint32_t i = 0; i < CELLS * ROUNDS; i++) {
        const uint32_t cell = i % CELLS, round = i / CELLS;
        struct sweep_figures *at = &figures[i];
        *at =
            (struct sweep_figures){.is_measured = true, .is_valid = true, .wall_s = 20, .ranks = 1};
        strcpy(at->limit, cell ? "page cache" : "storage");
        strcpy(at->cache, round == 1 && cell == 2 ? "warm" : "cold");
        at->samples_per_s = 1000 * (1 + (double)sweep_digit(&sweep.plan, cell, 0)) *
                            (1 + 0.75 * (double)sweep_digit(&sweep.plan, cell, 1)) *
                            (1 + 0.02 * ((cell * 7 + round * 5) % 4));
        for (int part = 0; part < SWEEP_PARTS; part++)
            at->parts_s[part] = part == SWEEP_UPLOAD ? (double)NAN : part + 1;
    }
    figures[CELLS + 5].is_valid = false;
    strcpy(figures[CELLS + 5].reason, "caches were not cold");
    figures[2 * CELLS + 3] = (struct sweep_figures){0};
    page_begin();
    sweep_print(stdout, &sweep, "--time-budget");
    sweep_print_cells(stdout, &sweep, 1, 2);
    assert_int_equal(sweep_write_files(&sweep, "--time-budget"), 0);
    page_end_with_document("sweep.txt", "sweep.json");
    settings.json = NULL;
    settings.csv = standard_output;
    page_begin();
    assert_int_equal(sweep_write_files(&sweep, NULL), 0);
    page_end("sweep.csv");
    settings.csv = no_file;
    assert_int_not_equal(sweep_write_files(&sweep, NULL), 0);
    settings.csv = NULL;
    settings.json = no_file;
    assert_int_not_equal(sweep_write_files(&sweep, NULL), 0);

    /* A survey of orders has no rates; two runs have a range. */
    for (uint32_t i = 0; i < CELLS * ROUNDS; i++) {
        figures[i].samples_per_s = NAN;
        figures[i].randomness = figures[i].is_measured ? 0.125 * (1 + i % CELLS) : 0;
    }
    sweep.table.rounds = 2;
    page_begin();
    sweep_print(stdout, &sweep, NULL);
    page_end("sweep-orders.txt");
    sweep_release(&sweep.plan);
}

/* What a sweep takes from the document of a run. */
static void figures_are_read_from_a_run(void **unused)
{
    struct sweep_figures figures = {0};
    json_t *document = json_pack(
        "{s:[{s:b, s:n, s:{s:i, s:s, s:s}, s:{s:i, s:i}, s:{s:s, s:s, s:i, s:i, s:s}, s:{s:s},"
        " s:[{s:[{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}, {s:i, s:i}]}, {s:[{s:i, s:i}]}]}]}",
        "jobs", "valid", 1, "invalid_reason", "summary", "samples_per_s", 1234, "limit", "decode",
        "cache_before", "cold", "engine", "ranks", 6, "nodes", 3, "dataset", "path", "/set",
        "format", "tar", "samples", 77, "record_bytes", 7700, "identity", "abc", "place", "host",
        "node7", "runs", "epochs", "wall_s", 100, "wait_s", 1, "upload_s", 2, "compute_s", 3,
        "exchange_s", 4, "update_s", 5, "start_barrier_s", 6, "stop_barrier_s", 7, "wall_s", 200,
        "wait_s", 10, "epochs", "wall_s", 400, "stop_barrier_s", 20);
    json_t *job = json_array_get(json_object_get(document, "jobs"), 0);
    const double parts[SWEEP_PARTS] = {11, 2, 3, 4, 5, 33};

    assert_int_equal(sweep_read_job(document, &figures), 0);
    assert_true(figures.is_valid);
    assert_string_equal(figures.reason, "");
    assert_string_equal(figures.limit, "decode");
    assert_string_equal(figures.cache, "cold");
    assert_equal(figures.samples_per_s, 1234);
    assert_int_equal(figures.ranks, 6);
    assert_equal(figures.set_samples, 77);
    assert_equal(figures.set_bytes, 7700);
    for (int i = 0; i < SWEEP_PARTS; i++)
        assert_equal(figures.parts_s[i], parts[i]);
    assert_equal(figures.wall_s, 700 + 33);
    /* Another path, format, identity or host is told apart. */
    const struct sweep_figures first = figures;
    assert_true(first.set && first.files && first.host);
    static const char *const changes[][2] = {
        {"dataset", "path"}, {"dataset", "format"}, {"dataset", "identity"}, {"place", "host"}};
    for (int i = 0; i < 4; i++) {
        json_t *object = json_object_get(job, changes[i][0]);
        json_t *former = json_incref(json_object_get(object, changes[i][1]));
        json_object_set_new(object, changes[i][1], json_string("other"));
        assert_int_equal(sweep_read_job(document, &figures), 0);
        assert_int_equal(figures.set != first.set, i < 2);
        assert_int_equal(figures.files != first.files, i == 2);
        assert_int_equal(figures.host != first.host, i == 3);
        json_object_set_new(object, changes[i][1], former);
    }
    json_object_del(json_object_get(job, "dataset"), "identity");
    json_object_set_new(job, "valid", json_false());
    json_object_set_new(job, "invalid_reason", json_string("not cold"));
    assert_int_equal(sweep_read_job(document, &figures), 0);
    assert_true(!figures.is_valid && figures.files == 0);
    assert_string_equal(figures.reason, "not cold");
    json_object_set_new(job, "valid", json_true());
    json_object_set_new(job, "degraded", json_true());
    json_object_set_new(job, "degraded_reason", json_string("other readers"));
    assert_int_equal(sweep_read_job(document, &figures), 0);
    assert_false(figures.is_valid);
    assert_string_equal(figures.reason, "other readers");
    json_object_clear(document);
    assert_int_not_equal(sweep_read_job(document, &figures), 0);
    assert_reason("it has no jobs");
    json_decref(document);
}

static void check_source(double percent, const char *wanted)
{
    struct sweep_figures figures = {0};
    json_t *document =
        json_pack("{s:[{s:f, s:i, s:i, s:i, s:i}]}", "batch_sizes", "storage_percent", percent,
                  "samples_per_s", 50, "wall_s", 9, "wait_s", 2, "compute_s", 5);

    assert_int_equal(sweep_read_inference(document, &figures), 0);
    assert_true(figures.is_valid);
    assert_string_equal(figures.cache, wanted);
    assert_equal(figures.samples_per_s, 50);
    assert_equal(figures.wall_s, 9);
    assert_equal(figures.parts_s[SWEEP_WAIT], 2);
    assert_equal(figures.parts_s[SWEEP_COMPUTE], 5);
    assert_int_equal(figures.ranks, 1);
    json_decref(document);
}

static void check_survey(double labels, double random, const char *key, const char *reason)
{
    struct sweep_figures figures = {0};
    json_t *rows = json_pack("[{s:f, s:f, s:i, s:i}]", "labels_per_batch", labels,
                             "labels_per_batch_at_random", 8.0, "samples_per_s", 70, "ranks", 3);

    if (key)
        json_object_set_new(json_array_get(rows, 0), key, json_string(reason));
    assert_int_equal(sweep_read_survey(rows, &figures), 0);
    assert_int_equal(figures.is_valid, key == NULL);
    assert_string_equal(figures.reason, key ? reason : "");
    assert_equal(figures.randomness, random);
    assert_equal(figures.samples_per_s, 70);
    assert_int_equal(figures.ranks, 3);
    json_decref(rows);
}

static void figures_are_read_from_the_rest(void **unused)
{
    struct sweep_figures figures;
    json_t *two = json_pack("[{}, {}]"), *none = json_array();

    check_source(100, "all from storage");
    check_source(98, "all from storage");
    check_source(97.9, "partly in memory");
    check_source(2.1, "partly in memory");
    check_source(2, "all in memory");
    check_survey(2, 0.25, NULL, NULL);
    check_survey(9, 1, NULL, NULL);
    check_survey(4, 0.5, "refused", "too few shards");
    check_survey(4, 0.5, "not_read_reason", "no memory");
    check_survey(4, 0.5, "unverified_reason", "it was cached");
    assert_int_equal(sweep_read_survey(two, &figures), 0);
    assert_false(figures.is_valid);
    assert_string_equal(figures.reason,
                        "it has several rows: give the values of a list one by one");
    assert_int_not_equal(sweep_read_survey(none, &figures), 0);
    assert_reason("it has no orders");
    assert_int_not_equal(sweep_read_inference(none, &figures), 0);
    assert_reason("it has no batch sizes");
    json_decref(two);
    json_decref(none);
}

/* A second at 10 and one at 30 MB/s: 20 MB/s, the halves 10 MB/s off; 40 reads of 1 MB. */
static void a_recording_of_two_lines(void **unused)
{
    struct size_recording recording;

    folder_put("two", "{\"interval_s\": 1, \"storage_read_bytes_per_s\": 1e7, "
                      "\"storage_read_count_per_s\": 10}\n"
                      "{\"interval_s\": 1, \"storage_read_bytes_per_s\": 3e7, "
                      "\"storage_read_count_per_s\": 30}\n");
    assert_int_equal(size_recording_load(folder_path("two"), &recording), 0);
    assert_true(recording.seconds == 2 && recording.read_bytes == 1e6);
    assert_true(recording.bytes_per_s.value == 2e7 && recording.bytes_per_s.spread == 0.5);
    assert_true(recording.peak_bytes_per_s == 3e7);
}

/* ---- commands, of made measurements ---- */

/* Run a command as its line says; what it prints, errors too, is added to the page. */
static void command_line(const struct command *command, const char *line)
{
    char copy[512], *words[64];
    struct arguments arguments;
    struct common_settings common = {0};
    struct invocation invocation = {.command = command, .argv = words};
    struct arguments_scope scopes[] = {{command->options, calloc(1, command->settings_size), NULL},
                                       {common_options, &common, NULL},
                                       {0}};

    snprintf(copy, sizeof copy, "%s", line);
    invocation.argc = arguments_split(copy, words);
    invocation.settings = scopes[0].settings;
    assert_int_equal(option_defaults(command->options, invocation.settings), 0);
    const int code = arguments_parse(scopes, invocation.argc, words, &arguments);
    invocation.operands = arguments.operands;
    invocation.count = arguments.count;
    printf("$ iobench %s %s\n", command->name, line);
    fflush(stdout);
    const int error = dup(STDERR_FILENO),
              status = (dup2(STDOUT_FILENO, STDERR_FILENO),
                        code ? command_misused(&invocation) : command->run(&invocation));
    fflush(stdout);
    assert_true(dup2(error, STDERR_FILENO) >= 0);
    close(error);
    printf("[%d]\n\n", status);
    free(arguments.operands);
    option_release(command->options, invocation.settings);
    free(invocation.settings);
}

/* What stands for the measurements, and what they were asked for. */
static struct {
    unsigned calls, devices, skips, good; /* good: measurements before that of the code */
    struct ranks_place place;
    struct storage_share share;
    struct guard_counts guard;
    int code;             /* of the next measurement: negative: it fails, 1: invalid, 2: no runs */
    const char *degraded; /* of a run */
} made;

static int made_code(void)
{
    const int code = made.good ? 0 : made.code;

    made.code = made.good ? made.code : 0;
    made.good -= made.good > 0;
    return code < 0 ? fail(-code, "made to fail") : code;
}

#define STANDS_FOR(type, name, ...)  \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

STANDS_FOR(int, infer_run, const struct infer_job *job, const struct infer_observer *observer,
           struct infer_result *result)
{
    *result = (struct infer_result){
        .cost = {.parameters = 11689512, .forward_macs = 1814073344},
        .calibrated = job->calibrate == 20 ? 19 : 0,
        .result = {.job = &job->job, .valid = true, .environment = machine()}};
    printf("%u warm-up, calibrate %u by %d on %s, side %u, classes %u, %s\n", job->warmup,
           job->calibrate, (int)job->calibrate_by,
           job->calibrate_data ? job->calibrate_data : "the same", job->training.side,
           job->training.classes, job->job.read.data);
    strcpy(result->backend, "made");
    snprintf(result->weights, sizeof result->weights, "%s", job->weights ? job->weights : "");
    result->result.data_was_made = job->warmup == 7;
    if (job->warmup == 8) {
        strcpy(result->result.invalid_reason, "clocks <disagree>");
        result->result.valid = false;
        strcpy(result->result.notices[result->result.notice_count++], "a notice");
    }
    result->rows = calloc(32, sizeof *result->rows);
    for (uint32_t p = 0; p < job->precision_count; p++)
        for (uint32_t b = 0; b < job->batch_size_count; b++) {
            const uint32_t number = result->row_count++, size = job->batch_sizes[b];
            struct infer_row *row = &result->rows[number];
            *row = (struct infer_row){.batch_size = size,
                                      .counted = job->warmup == 9 ? 0 : 900,
                                      .loss = 1.5 + number,
                                      .top1 = 0.75 - 0.125 * p,
                                      .top5 = 0.875 + 0.0625 * p};
            row->io = (struct result_epoch){
                .samples = 1000 + number,
                .skipped = job->warmup == 6,
                .record_bytes = 5 * MIB,
                .wall_ns = MS(4000) / (number + 1),
                .wait_ns = MS(500),
                .compute_ns = MS(300 + number),
                .device = {.known = job->warmup != 9, .bytes = (4 - number % 3) * MIB}};
            strcpy(row->io.device.reason, job->warmup == 9 ? "no counters" : "");
            snprintf(row->precision, sizeof row->precision, "%s",
                     job->precisions[p] ? job->precisions[p] : "fp32");
            row->is_int8 = strcmp(row->precision, "int8") == 0;
            row->int8 = (struct quantise_share){.in_int8 = job->warmup == 9 ? 0 : 3, .layers = 4};
            for (uint64_t i = 1; i <= 1000; i++) {
                histogram_add(&row->latency_ns, MS(i) * (p + 1));
                histogram_add(&row->compute_ns, MS(i) / (p + 2));
            }
            observer->progress(observer->context, number ? row : NULL, number, 9, MS(70));
            observer->row(observer->context, result, row);
        }
    return made_code();
}

/* Of a load, a run of a GPU that takes a batch of 4 each 250 ms, and a storage that feeds 600
 * samples/s; of an order, a pass. */
STANDS_FOR(int, run_jobs, const struct job *jobs, uint32_t count, struct ranks *ranks,
           const struct run_observer *observer, struct result *results)
{
    const uint64_t samples = jobs->order.limit_samples_per_rank;
    struct result_run *run = calloc(1, sizeof *run);
    struct result_epoch *epoch = run->epochs = calloc(1, sizeof *run->epochs);
    const double load = jobs->open_load, late = load < 37 ? 1 : load;

    assert_int_equal(count, 1);
    run->epoch_count = 1;
    *results = (struct result){.job = jobs,
                               .valid = true,
                               .records = 5000,
                               .data = "/data/set",
                               .format = "tar",
                               .invalid_reason = "clocks disagree",
                               .run_count = 1,
                               .runs = run,
                               .environment = machine()};
    printf("load %.4g", load);
    for (const struct option_spec *row = job_options; row->name; row++) {
        char value[512];
        option_text(row, jobs, value, sizeof value);
        if (*value && (!row->fallback || strcmp(value, row->fallback) != 0))
            printf(" --%s=%s", row->name, value);
    }
    printf("\n");
    if (observer)
        observer->progress(observer->context,
                           &(struct run_progress){.job = jobs, .done = 1, .total = 2});
    if (load > 0) {
        const uint64_t ns = (uint64_t)((double)samples / 4 * 0.25e9 / load);
        *epoch =
            (struct result_epoch){.samples = samples,
                                  .batches = samples / 4,
                                  .nominal_ns = ns,
                                  .paced_samples = samples,
                                  .paced_bytes = 1000 * samples,
                                  .paced_ns = ns + MS(1),
                                  .read_samples = 600,
                                  .read_ns = MS(1000),
                                  .skipped = made.skips,
                                  .limit = load < 37 ? RESULT_LIMIT_TRAINER : RESULT_LIMIT_STORAGE};
        run->cold.state = ranks->place.ranks == 1 ? RESULT_CACHE_COLD : RESULT_CACHE_WARM;
        for (uint64_t i = 10; i < samples / 4; i++)
            histogram_add(&run->batch_late_ns, (uint64_t)(late * 1e4 * (double)i));
    } else {
        const bool is_none = strcmp(jobs->order.shuffle, "none") == 0;
        *epoch =
            (struct result_epoch){.samples = 3000,
                                  .record_bytes = 30 * MIB,
                                  .wall_ns = is_none ? MS(100 + made.calls) : MS(400 + made.calls)};
        run->cold.pages = made.calls == 5 ? RESIDENCY_WARM : RESIDENCY_COLD;
        run->cold.metadata_dropped = made.calls != 6;
        strcpy(run->cold.reason, "5% were resident");
        results->valid = made.calls != 7;
    }
    snprintf(results->degraded_reason, sizeof results->degraded_reason, "%s",
             made.degraded ? made.degraded : "");
    const int code = made_code();
    results->valid = results->valid && code != 1 && code != 2;
    results->run_count = code == 2 ? 0 : 1;
    if (code == 2)
        free(epoch);
    made.calls++;
    return code < 0 ? code : 0;
}

STANDS_FOR(int, service_measure, const struct service *service, struct service_figures *figures)
{
    const double size = service->read_bytes, depth = service->depth;

    assert_true(service->memory.iov_len >= service->read_bytes * service->depth);
    printf("%s of %u files, %.0f x %.0f, %llu of %llu ns, seed %llx\n",
           service->reader->plugin->name ? "reads" : "", service->catalog->shard_count, size, depth,
           (unsigned long long)service->duration_ns, (unsigned long long)service->timeout_ns,
           (unsigned long long)service->seed);
    *figures = (struct service_figures){.bytes_per_s = 1e9 * (1 - exp(-depth * size / 1e5)) *
                                                       (1 + 0.01 * (made.calls++ % 7)),
                                        .bytes = service->read_bytes * service->depth,
                                        .latency_s = depth * 1e-4,
                                        .latency_cv = size * 1e-5,
                                        .engine = "made engine"};
    return made_code();
}

STANDS_FOR(void, storage_between, const struct storage *storage, const struct storage_bytes *before,
           const struct storage_bytes *after, struct storage_share *share)
{
    (void)storage, (void)before, (void)after;
    *share = made.share;
}

STANDS_FOR(void, guard_end, const struct guard_moment *from, struct guard_counts *sum)
{
    (void)from;
    *sum = made.guard;
}

STANDS_FOR(int, devices_of_path, const struct telemetry_roots *roots, const char *path,
           struct device_list *list)
{
    (void)roots, (void)path;
    list->count = made.devices;
    return 0;
}

STANDS_FOR(int, gethostname, char *name, size_t bytes)
{
    snprintf(name, bytes, "node7");
    return 0;
}

/* All ranks do as this one. */
static int gather_alike(void *state, const void *mine, uint64_t bytes, void *all)
{
    for (uint32_t i = 0; i < made.place.ranks; i++)
        memcpy((char *)all + i * bytes, mine, bytes);
    return 0;
}

static int test_done(void *state, bool *done)
{
    *done = true;
    return 0;
}

STANDS_FOR(int, command_join, struct ranks *ranks)
{
    static const struct ranks_ops ops = {.gather = gather_alike, .test = test_done};

    *ranks = ranks_alone();
    if (made.place.ranks > 1) {
        ranks->ops = &ops;
        ranks->place = made.place;
    }
    return 0;
}

static void show_file(const char *name)
{
    FILE *file = fopen(name, "r");

    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        putchar(c);
    fclose(file);
}

/* Golden pages are found from where the test started. What depends on the build is left out. */
static void page_end_below(const char *name, int here)
{
    static const char *const parts[][2] = {
        {"  \"iobench_version\"", "\n"}, {"  \"checksum\"", "\n"}, {"    \"modules\"", "],\n"}};
    char *text = page_text();

    for (int i = 0; i < 3; i++)
        for (char *from; (from = strstr(text, parts[i][0]));) {
            const char *to = strstr(from, parts[i][1]) + strlen(parts[i][1]);
            memmove(from, to, strlen(to) + 1);
        }

    assert_int_equal(fchdir(here), 0);
    assert_golden(name, text);
    assert_int_equal(chdir(test_folder), 0);
}

#define LENET "--data set --network lenet "
#define RAMP "--data set --trainer replay:rate=16 -B 4 --decode none "

static void commands_of_made_measurements(void **unused)
{
    static const char set[][16] = {"set/a/1.jpg", "set/a/2.jpg", "set/b/3.jpg", "set/b/4.jpg",
                                   "set/c/5.jpg"};
    static const int codes[] = {-ENOMEM, -EIO, 1, -EINTR, 2, -EINVAL};
    static char bytes[200000];

    const int here = open(".", O_PATH | O_CLOEXEC);

    assert_int_equal(chdir(test_folder), 0);
    assert_true(mkdir("set", 0700) == 0 && mkdir("set/a", 0700) == 0 && mkdir("set/b", 0700) == 0 &&
                mkdir("set/c", 0700) == 0 && mkdir("many", 0700) == 0);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        folder_write(set[i], "\xff\xd8\xff", 3);
    folder_write("large", bytes, sizeof bytes);
    folder_write("weights", bytes, 1);
    folder_write("many/1", bytes, 70000);
    folder_write("many/2", bytes, 5000);
    page_begin();
    command_line(
        &command_infer, LENET
        "--batch-size 1,8 --precision fp32,int8 --calibrate-images 20 --init weights --json -");
    command_line(
        &command_infer, LENET
        "--batch-size 1,8 --precision fp32,int8 --calibrate-images 20 --init weights --warmup 7");
    command_line(&command_infer,
                 "--data set --network tiny --size 48 --classes 9 --batch-size 2 --warmup 6");
    command_line(
        &command_infer, LENET
        "--batch-size 2,3 --precision int8,fp16,int8 --warmup 9 --init weights --json report");
    command_line(&command_infer, LENET "--warmup 8 --calibrate-data set --calibrate-by absmax");
    command_line(&command_infer, LENET "--batch-size 8,1048577");
    command_line(&command_infer, LENET "--precision fp8");
    command_line(&command_infer, LENET "--precision fp32,fp32,fp32,fp32,fp32,fp32,fp32,fp32,fp32");
    command_line(&command_infer, LENET "--checkpoint set --init weights");
    for (int i = 0; i < 3; i++) {
        static const char *const missing[] = {LENET "--checkpoint none", LENET "--init none",
                                              LENET "--calibrate-data none"};
        command_line(&command_infer, missing[i]);
    }
    made.code = -ENOMEM;
    command_line(&command_infer, LENET);
    page_end_below("commands-infer.txt", here);

    page_begin();
    command_line(&command_ramp, RAMP "--plot ramp.svg");
    show_file("ramp.svg");
    command_line(&command_ramp, RAMP "--runs 1 --from 30 --to 40 --limit 50% --duration 20s "
                                     "--precision 10% --limit-samples 90 --drop-caches");
    command_line(&command_ramp, RAMP "--limit 0.1%");
    made.degraded = "another <process> read";
    command_line(&command_ramp, RAMP "--from 8 --to 8 --json - --label mine");
    command_line(&command_ramp, RAMP "--from 8 --to 8");
    made.degraded = NULL;
    for (made.skips = 1; made.skips < 3; made.skips++)
        command_line(&command_ramp, RAMP "--from 3 --to 3 --runs 1");
    made.skips = 0;
    made.place = (struct ranks_place){.ranks = 4, .nodes = 2, .local_ranks = 2};
    command_line(&command_ramp, RAMP "--from 50 --to 20 --runs 1");
    made.place = (struct ranks_place){0};
    for (int i = 0; i < 6; i++) {
        made.good = i % 2 ? 3 : 0;
        made.code = codes[i];
        command_line(&command_ramp, RAMP "--from 3 --to 9");
    }
    made.good = 0;
    made.code = 0;
    command_line(&command_ramp, RAMP "-B 50 --from 3 --to 3 --json /nothing/here");
    command_line(&command_ramp, RAMP "--runs 2");
    command_line(&command_ramp, "--data set --trainer none");
    command_line(&command_ramp, "--trainer replay:rate=16");
    command_line(&command_ramp, "--data set --plot ramp.txt");
    page_end_below("commands-ramp.txt", here);

    page_begin();
    made.calls = 0;
    command_line(&command_shuffle, "epoch none --data set --measure --runs 4 --batch-size 2 "
                                   "--classes 3 --window 3 --bs 4k -q 5 --direct --memory 64m "
                                   "--reader pread --seed 9 --limit-samples 4 --plot front.svg");
    show_file("front.svg");
    command_line(&command_shuffle, "none epoch --data set --measure --runs 1 --batch-size 2 "
                                   "--ranks 2 --partition sticky --remainder pad");
    for (int i = 0; i < 5; i++) {
        made.code = codes[i];
        command_line(&command_shuffle, "none --data set --measure --runs 1 --batch-size 2");
    }
    command_line(&command_shuffle, "none --measure");
    page_end_below("commands-orders.txt", here);

    page_begin();
    made.calls = 0;
    made.devices = 1;
    made.share = (struct storage_share){
        .known = true, .bytes = 5 * (4096 * 3 + 65536 * 3), .method = "made counter"};
    command_line(&command_size, "--measure large --read-sizes 4k,64k,1m --depths 1,2");
    command_line(
        &command_size,
        "--measure many --read-sizes 4k,64k --depths 1,2,8 --measure-time 5ms --seed 4 --save -");
    for (uint64_t left = 501760; left <= 768000; left += 266240) { /* 98 and 150 percent */
        made.share.bytes = left;
        made.share.of_node = left > 512000;
        command_line(&command_size, "--measure large --read-sizes 20k --depths 5 --save -");
    }
    made.share.bytes = 5 * (4096 * 3 + 65536 * 3);
    made.share.of_node = true;
    made.share.bytes *= 2;
    command_line(&command_size, "--measure large --read-sizes 4k,64k --depths 1,2 --save -");
    made.place = (struct ranks_place){.ranks = 4, .nodes = 2, .local_ranks = 2};
    made.guard =
        (struct guard_counts){.is_starved = true, .delayed_percent = 12, .stolen_percent = 34};
    made.share.bytes = 7 * (4096 * 3 + 65536 * 3);
    command_line(&command_size,
                 "--measure large --read-sizes 4k,64k --depths 1,2 --save profile.ini");
    command_line(&command_size, "--measure large --read-sizes 4k,64k --depths 1,2 --save -");
    made.devices = 0;
    made.guard.is_starved = false;
    made.share = (struct storage_share){.reason = "no counters"};
    command_line(&command_size, "--measure large --read-sizes 4k --depths 3 --save -");
    made.place.ranks = 5;
    made.devices = 2;
    command_line(&command_size, "--measure large --read-sizes 4k --depths 3");
    made.place = (struct ranks_place){0};
    made.guard = (struct guard_counts){.is_throttled = true, .throttled_percent = 55};
    command_line(&command_size, "--measure large --read-sizes 4k --depths 3 --save -");
    made.guard = (struct guard_counts){0};
    for (int i = 1; i < 6; i += 4) {
        made.code = codes[i];
        command_line(&command_size, "--measure large --read-sizes 4k --depths 3");
    }
    command_line(&command_size, "--measure large --read-sizes 1m --depths 3");
    command_line(&command_size, "--measure large --read-sizes 5k --depths 3");
    command_line(&command_size, "--measure weights --read-sizes 4k --depths 3");
    page_end_below("commands-storage.txt", here);
    assert_true(fchdir(here) == 0 && close(here) == 0);
}

/* ---- options: what each takes, of commands and plug-ins ---- */

static void put_options(FILE *stream, const char *owner, const struct option_spec *row)
{
    for (; row && row->name; row++) {
        fprintf(stream, "%s --%s", owner, row->name);
        if (row->letter)
            fprintf(stream, " -%c", row->letter);
        fprintf(stream, " type %d reach %d", (int)row->type, (int)row->reach);
        if (row->fallback)
            fprintf(stream, " default %s", row->fallback);
        if (row->implied)
            fprintf(stream, " implied %s", row->implied);
        if (row->minimum != 0 || row->maximum != 0)
            fprintf(stream, " from %g to %g", row->minimum, row->maximum);
        if (row->zero)
            fprintf(stream, " zero %s", row->zero);
        if (row->begins)
            fprintf(stream, " begins %s", row->begins);
        fprintf(stream, "%s%s%s", row->per_second ? " per second" : "",
                row->percent ? " percent" : "", row->repeats ? " repeats" : "");
        for (int i = 0; row->choices && row->choices[i]; i++)
            fprintf(stream, "%s%s", i ? "|" : " ", row->choices[i]);
        fputc('\n', stream);
    }
}

static void put_figures(FILE *stream, const struct monitor_figure *row, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(stream, "figure %s of %s %s per %s how %d factor %g table %g %s%s\n",
                row[i].key ? row[i].key : "-", row[i].probe, row[i].quantity,
                row[i].per ? row[i].per : "-", (int)row[i].how, row[i].factor, row[i].table_factor,
                row[i].unit ? row[i].unit : "-", row[i].of_a_cpu ? " of a CPU" : "");
}

/* Plug-ins differ from build to build: each line that there is must be written in the page. */
static void what_each_option_takes(void **unused)
{
    char *text = calloc(1, PAGE_BYTES), path[512];
    const char *source = getenv("srcdir");
    FILE *stream = fmemopen(text, PAGE_BYTES, "w");

    for (int i = 0; command_registry[i]; i++)
        put_options(stream, command_registry[i]->name, command_registry[i]->options);
    put_options(stream, "any", common_options);
    put_figures(stream, meter_figures, METER_COUNTS);
    put_figures(stream, monitor_figures, MONITOR_FIGURES);
    for (const struct family *family = family_table; family->name; family++)
        for (int i = 0; family->registry[i]; i++) {
            char owner[64];
            snprintf(owner, sizeof owner, "%s %s", family->name, family->registry[i]->name);
            put_options(stream, owner, family->registry[i]->options);
        }
    assert_int_equal(fclose(stream), 0);
    if (renew) {
        assert_golden("options.txt", text);
        return;
    }
    snprintf(path, sizeof path, "%s/tests/golden/pages/options.txt", source ? source : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *wanted = content(file);
    fclose(file);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *at = wanted;
        const size_t bytes = strlen(line);
        while ((at = strstr(at, line)) && !((at == wanted || at[-1] == '\n') && at[bytes] == '\n'))
            at++;
        if (!at)
            fail_msg("%s has no line: %s", path, line);
    }
    free(wanted);
    free(text);
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_each_option_takes),
        cmocka_unit_test_setup_teardown(a_recording_of_two_lines, folder_setup, folder_teardown),
        FOLDER_TEST(commands_of_made_measurements),
        cmocka_unit_test(all_of_a_checkpoint),
        cmocka_unit_test(all_of_a_poor_checkpoint),
        cmocka_unit_test(all_of_a_fabric),
        cmocka_unit_test(all_of_two_jobs),
        cmocka_unit_test(all_of_a_run),
        cmocka_unit_test(all_of_a_progress),
        cmocka_unit_test(all_of_a_series),
        cmocka_unit_test(all_of_a_training),
        cmocka_unit_test(all_of_orders),
        cmocka_unit_test(all_of_a_sweep),
        cmocka_unit_test(figures_are_read_from_a_run),
        cmocka_unit_test(figures_are_read_from_the_rest),
    };

    setenv("COLUMNS", "80", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    renew = argument_count > 1 ? arguments[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
