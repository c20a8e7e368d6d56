/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that need no decoding are finished by the loader's thread: each is counted once, by it
 * or by a decode thread, also those that cannot be read.
 */
#include "bench/job.h"
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "pipeline/engine/batches.h"
#include "pipeline/engine/decoders.h"
#include "pipeline/engine/engine.h"
#include "pipeline/loader/loader.h"
#include "readers/plugins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARDS = 2, SHARD_RECORDS = 1500, RECORDS = SHARDS * SHARD_RECORDS, RECORD_BYTES = 4096 };

static struct catalog *make_catalog(bool with_files)
{
    struct catalog *catalog = catalog_create("set", "files");

    for (int shard = 0; shard < SHARDS; shard++) {
        struct store_status status = {.bytes = SHARD_RECORDS * RECORD_BYTES};
        char *path = strdup(folder_path(shard ? "one" : "zero"));
        if (with_files) {
            FILE *file = fopen(path, "w");
            assert_non_null(file);
            assert_int_equal(ftruncate(fileno(file), SHARD_RECORDS * RECORD_BYTES), 0);
            assert_int_equal(fclose(file), 0);
        }
        assert_int_equal(catalog_begin_shard(catalog, path, with_files ? NULL : &status, 0), 0);
        for (uint64_t i = 0; i < SHARD_RECORDS; i++)
            assert_int_equal(catalog_add(catalog, i * RECORD_BYTES, RECORD_BYTES), 0);
        free(path);
    }
    assert_int_equal(catalog_seal(catalog), 0);
    return catalog;
}

/* ---- the loader and a sink of its own ---- */

static struct {
    uint32_t times[RECORDS], calls;
    uint64_t next;    /* no earlier address may follow */
    uint32_t fail_at; /* this call fails; 0: none does */
} sink;

static uint64_t expect(void *state, uint64_t draws)
{
    return 0;
}

static void cancel(void *state) {}

static int take_some(void *state, struct fetch *const *fetches, uint32_t count)
{
    const uint32_t some = ++sink.calls % 3 == 0 ? 0 : sink.calls % 3 == 1 ? count : count / 2;

    if (sink.calls == sink.fail_at)
        return fail(EIO, "this sink fails");
    for (uint32_t i = 0; i < some; i++) {
        assert_true(fetches[i]->address >= sink.next);
        sink.next = fetches[i]->address + 1;
        sink.times[fetches[i]->address]++;
    }
    return (int)some;
}

/* Returns what the loader's thread did. */
static int run_loader(void)
{
    struct catalog *catalog = make_catalog(false);
    struct plugin_choice reader = {.plugin = &reader_null.plugin}, shuffle = {0};
    struct fetch *fetches[7];
    uint64_t next = 0;
    struct plan plan;
    int count;

    assert_int_equal(plugin_choose("shuffle", shuffle_registry, "epoch", &shuffle), 0);
    assert_int_equal(
        plan_open(&plan, &shuffle, &(struct plan_scope){.catalog = catalog, .seed = 3, .ranks = 1}),
        0);
    struct loader *loader = loader_create(&(struct loader_config){
        .catalog = catalog,
        .reader = &reader,
        .plan = &plan,
        .sink = {.expect = expect, .cancel = cancel, .take = take_some},
        .read = &(struct read_settings){.iodepth = 8, .block_bytes = RECORD_BYTES},
        .order = &(struct order_settings){.window = 1},
        .memory_bytes = 4 << 20,
        .alignment = 4096,
    });
    assert_non_null(loader);
    assert_int_equal(loader_start(loader, NULL), 0);
    loader_begin(loader, 0, 0);
    loader_finish(loader);
    while ((count = loader_acquire(loader, fetches, 7)) > 0) {
        for (int i = 0; i < count; i++) {
            assert_true(fetches[i]->address >= next);
            next = fetches[i]->address + 1;
            sink.times[fetches[i]->address]++;
        }
        loader_release(loader, fetches, (uint32_t)count);
    }
    const int code = loader_join(loader);
    loader_destroy(loader);
    plan_close(&plan);
    plugin_release(&shuffle);
    catalog_destroy(catalog);
    return code;
}

static void what_the_sink_leaves_goes_to_the_workers(void **unused)
{
    memset(&sink, 0, sizeof sink);
    assert_int_equal(run_loader(), 0);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(sink.times[i], 1);
}

static void a_sink_that_fails_ends_the_run(void **unused)
{
    memset(&sink, 0, sizeof sink);
    sink.fail_at = 5;
    assert_int_equal(run_loader(), -EIO);
    assert_string_equal(fail_reason(), "this sink fails");
}

/* ---- the engine, whose second file is gone ---- */

static struct result_epoch epochs[3];

static int run_engine(const char *on_error, struct result_run *run)
{
    static const struct engine_hooks hooks = {0};
    const char *const settings[][2] = {
        {"reader", "pread"},     {"shuffle", "epoch"}, {"decode", "none"},  {"batch-size", "32"},
        {"decode-threads", "2"}, {"memory", "64m"},    {"trainer", "none"}, {"on-error", on_error}};
    struct catalog *catalog = make_catalog(true);
    struct result result = {.valid = true};
    struct bench_job job;
    struct engine *engine;

    assert_int_equal(unlink(folder_path("one")), 0);
    if (bench_job_open(&job, settings, sizeof settings / sizeof *settings))
        fail_msg("%s", fail_reason());
    struct engine_config site = {.job = &job.job, .plugins = &job.plugins, .catalog = catalog};
    if (engine_create(&site, &result, &engine))
        fail_msg("%s", fail_reason());
    memset(&site, 0xff, sizeof site); /* the engine has its own */
    *run = (struct result_run){.epochs = epochs};
    const int code = engine_run(engine, 2, &hooks, run, &result);
    engine_destroy(engine);
    bench_job_close(&job);
    catalog_destroy(catalog);
    return code;
}

static void records_that_cannot_be_read_are_skipped(void **unused)
{
    struct result_run run;

    assert_int_equal(run_engine("skip", &run), 0);
    assert_int_equal(run.epoch_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(epochs[i].samples, SHARD_RECORDS);
        assert_int_equal(epochs[i].skipped, SHARD_RECORDS);
        assert_int_equal(epochs[i].record_bytes, SHARD_RECORDS * RECORD_BYTES);
    }
    const struct findings_kind *skipped = &run.findings.kinds[FINDING_SKIPPED];
    assert_int_equal(skipped->count, 2 * SHARD_RECORDS);
    assert_non_null(strstr(skipped->texts[0], "one: offset "));
}

static void the_first_that_cannot_be_read_ends_the_run(void **unused)
{
    struct result_run run;

    assert_refused(run_engine("stop", &run), -ENOENT, "one: cannot open");
}

/* ---- who takes the records ---- */

static bool looks(const char *decoder, const char *format, bool check_crc, bool digest)
{
    struct job job = {.decode = {.check_crc = check_crc, .digest = digest}};
    struct job_plugins plugins = {0};

    assert_int_equal(plugin_choose("decoder", decoder_registry, decoder, &plugins.decoder), 0);
    if (format)
        assert_int_equal(plugin_choose("format", format_registry, format, &plugins.format), 0);
    const bool looks = decoders_look(&job, &plugins);
    plugin_release(&plugins.decoder);
    plugin_release(&plugins.format);
    return looks;
}

static void a_stage_looks_at_records(void **unused)
{
    assert_true(looks("jpeg", "files", false, false));
    assert_true(looks("checksum", "recordio", false, false));
    assert_true(looks("none", "recordio", true, false));
    assert_true(looks("none", "files", false, true));
    assert_false(looks("none", "recordio", false, false));
    assert_false(looks("none", "files", true, false));
    assert_false(looks("none", NULL, true, false));
}

/* Returns how long decode threads worked. All batches are open at the start: no record has to wait
 * for one. */
static uint64_t run_floor(bool by_threads)
{
    static const char *const settings[][2] = {
        {"reader", "null"},      {"shuffle", "epoch"}, {"decode", "none"}, {"batch-size", "100"},
        {"decode-threads", "2"}, {"prefetch", "40"},   {"memory", "64m"},  {"trainer", "none"}};
    static const struct engine_hooks hooks = {0};
    static struct meter meter;
    struct catalog *catalog = make_catalog(false);
    struct result result = {.valid = true};
    struct result_run run = {.epochs = epochs};
    struct bench_job job;
    struct engine *engine;

    meter = (struct meter){0};
    if (bench_job_open(&job, settings, sizeof settings / sizeof *settings))
        fail_msg("%s", fail_reason());
    const struct engine_config site = {.job = &job.job,
                                       .plugins = &job.plugins,
                                       .catalog = catalog,
                                       .meter = &meter,
                                       .by_threads = by_threads};
    if (engine_create(&site, &result, &engine) || engine_run(engine, 1, &hooks, &run, &result))
        fail_msg("%s", fail_reason());
    assert_int_equal(epochs[0].samples, RECORDS);
    engine_destroy(engine);
    bench_job_close(&job);
    catalog_destroy(catalog);
    return counter_get(&meter.counts[METER_DECODE_BUSY_NS]);
}

static void a_floor_takes_the_way_of_its_job(void **unused)
{
    assert_int_equal(run_floor(false), 0);
    assert_true(run_floor(true) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_sink_leaves_goes_to_the_workers),
        cmocka_unit_test(a_sink_that_fails_ends_the_run),
        cmocka_unit_test(records_that_cannot_be_read_are_skipped),
        cmocka_unit_test(the_first_that_cannot_be_read_ends_the_run),
        cmocka_unit_test(a_stage_looks_at_records),
        cmocka_unit_test(a_floor_takes_the_way_of_its_job),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
