/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that waits says so while it does: the live view and timelines show a stall when it
 * happens, not when it ends.
 */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/option.h"
#include "base/thread.h"
#include "pipeline/engine/batches.h"
#include "pipeline/engine/engine.h"
#include "pipeline/loader/loader.h"
#include "readers/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RECORDS = 2000, RECORD_BYTES = 4096, BATCH = 10 };
static const uint64_t PAUSE_NS = 5000000;

struct stage {
    struct catalog *catalog;
    struct plan plan;
    struct meter meter;
    struct batches *batches;
    struct loader *loader;
    struct plugin_choice reader, shuffle;
    struct read_settings read;
    struct order_settings order;
    struct fetch *fetches[RECORDS];
    uint32_t taken;
};

static struct catalog *make_catalog(void)
{
    const struct store_status status = {.bytes = RECORDS * RECORD_BYTES};
    struct catalog *catalog = catalog_create("set", "files");

    assert_int_equal(catalog_begin_shard(catalog, "set/shard", &status, 0), 0);
    for (uint64_t i = 0; i < RECORDS; i++)
        assert_int_equal(catalog_add(catalog, i * RECORD_BYTES, RECORD_BYTES), 0);
    assert_int_equal(catalog_seal(catalog), 0);
    return catalog;
}

static struct stage *stage_open(void)
{
    struct stage *stage = calloc(1, sizeof *stage);

    stage->catalog = make_catalog();
    stage->reader = (struct plugin_choice){.plugin = &reader_null.plugin};
    stage->read = (struct read_settings){.iodepth = 8, .block_bytes = RECORD_BYTES};
    stage->order = (struct order_settings){.window = 1};
    assert_int_equal(plugin_choose("shuffle", shuffle_registry, "epoch", &stage->shuffle), 0);
    assert_int_equal(
        plan_open(&stage->plan, &stage->shuffle,
                  &(struct plan_scope){.catalog = stage->catalog, .seed = 3, .ranks = 1}),
        0);
    stage->batches = batches_create(
        &(struct batches_config){.batch_size = BATCH, .buffers = 2, .meter = &stage->meter});
    stage->loader = loader_create(&(struct loader_config){
        .catalog = stage->catalog,
        .reader = &stage->reader,
        .plan = &stage->plan,
        .sink = batches_sink(stage->batches),
        .read = &stage->read,
        .order = &stage->order,
        .memory_bytes = 4 << 20,
        .alignment = 4096,
        .meter = &stage->meter,
    });
    assert_non_null(stage->loader);
    batches_reset(stage->batches);
    assert_int_equal(loader_start(stage->loader, NULL), 0);
    return stage;
}

static void stage_close(struct stage *stage)
{
    loader_cancel(stage->loader);
    loader_join(stage->loader);
    loader_destroy(stage->loader);
    batches_destroy(stage->batches);
    plan_close(&stage->plan);
    plugin_release(&stage->shuffle);
    catalog_destroy(stage->catalog);
    free(stage);
}

/* Twice: the first may have been of a wait that has ended. */
static void expect_growth(const struct stage *stage, enum meter_count count)
{
    for (int i = 0; i < 2; i++) {
        const uint64_t before = counter_get(&stage->meter.counts[count]);
        while (counter_get(&stage->meter.counts[count]) == before)
            clock_sleep_ns(PAUSE_NS);
    }
}

static int acquire(void *argument)
{
    struct stage *stage = argument;

    return loader_acquire(stage->loader, stage->fetches, 1);
}

static void a_wait_for_records_is_told_while_it_lasts(void **unused)
{
    struct stage *stage = stage_open();
    struct thread thread = {0};

    assert_int_equal(thread_start(&thread, "worker", acquire, stage), 0);
    expect_growth(stage, METER_DECODE_RECORD_NS);
    loader_finish(stage->loader); /* and ends with the records */
    assert_int_equal(thread_join(&thread), 0);
    stage_close(stage);
}

static int wait_open(void *argument)
{
    const struct stage *stage = argument;
    uint64_t waited_ns = 0;

    return batches_wait_open(stage->batches, 2, &waited_ns);
}

static void a_wait_for_a_batch_is_told_while_it_lasts(void **unused)
{
    struct stage *stage = stage_open();
    struct thread thread = {0};

    assert_int_equal(thread_start(&thread, "worker", wait_open, stage), 0);
    expect_growth(stage, METER_DECODE_BATCH_NS);
    batches_cancel(stage->batches);
    assert_int_equal(thread_join(&thread), -ECANCELED);
    stage_close(stage);
}

/* Fetches run out: nobody returns them. */
static void a_wait_for_memory_is_told_while_it_lasts(void **unused)
{
    struct stage *stage = stage_open();

    loader_begin(stage->loader, 0, 15);
    while (counter_get(&stage->meter.counts[METER_LOADER_MEMORY_NS]) == 0 &&
           stage->taken < RECORDS) {
        int count = loader_acquire(stage->loader, &stage->fetches[stage->taken], 1);
        assert_int_equal(count, 1);
        stage->taken += (uint32_t)count;
    }
    expect_growth(stage, METER_LOADER_MEMORY_NS);
    stage_close(stage);
}

/* Its order may take seconds to make: the caller looks after other things meanwhile. */
static void a_wait_for_an_epoch_is_short(void **unused)
{
    struct stage *stage = stage_open();
    uint64_t draws = 0;
    int code;

    assert_int_equal(batches_wait_epoch(stage->batches, 0, &draws), 0);
    loader_begin(stage->loader, 0, 0);
    while ((code = batches_wait_epoch(stage->batches, 0, &draws)) == 0)
        continue;
    assert_int_equal(code, 1);
    assert_int_equal(draws, RECORDS);
    batches_cancel(stage->batches);
    assert_int_equal(batches_wait_epoch(stage->batches, 0, &draws), -ECANCELED);
    stage_close(stage);
}

/* ---- the trainer's steps ---- */

static void expect_busy(const struct meter *meter, uint64_t ns)
{
    assert_int_equal(counter_get(&meter->counts[METER_TRAINER_BUSY_NS]), ns);
}

static void a_step_is_told_while_it_lasts(void **unused)
{
    struct result_epoch epoch = {0};
    struct meter meter = {0};
    struct account account = {.meter = &meter, .epoch = &epoch};

    account_step_begin(&account, 1000);
    account_step_goes_on(&account, 1300);
    expect_busy(&meter, 300);
    account_step_goes_on(&account, 1700);
    expect_busy(&meter, 700);
    account_step(&account, &(struct trainer_times){.compute_ns = 600, .update_ns = 150});
    expect_busy(&meter, 750);
    account_step_goes_on(&account, 5000); /* between two steps */
    expect_busy(&meter, 750);
    /* On a device, times are those of an earlier step. */
    account_step_begin(&account, 6000);
    account_step_goes_on(&account, 6500);
    account_step(&account, &(struct trainer_times){0});
    expect_busy(&meter, 1250);
    account_step(&account, &(struct trainer_times){.compute_ns = 400});
    expect_busy(&meter, 1250);
    account_step(&account, &(struct trainer_times){.upload_ns = 400});
    expect_busy(&meter, 1550);
}

static int busy_seen(void *context, const struct result_epoch *epoch, uint64_t draws)
{
    const struct meter *meter = context;

    return epoch->batches == 0 && counter_get(&meter->counts[METER_TRAINER_BUSY_NS]) > 0 ? -EINTR
                                                                                         : 0;
}

static int stopped(void *unused)
{
    return -EINTR;
}

/* One step of 20 seconds, which is ended as soon as it is on the meter. */
static void the_engine_tells_it(void **unused)
{
    const char *const settings[][2] = {{"reader", "null"},
                                       {"shuffle", "epoch"},
                                       {"decode", "none"},
                                       {"batch-size", "2000"},
                                       {"decode-threads", "1"},
                                       {"memory", "64m"},
                                       {"trainer", "replay:rate=100"}};
    static struct result_epoch epochs[2];
    static struct meter meter;
    const struct engine_hooks hooks = {.tick = busy_seen, .context = &meter};
    struct catalog *catalog = make_catalog();
    struct result result = {.valid = true};
    struct result_run run = {.epochs = epochs};
    struct job_plugins plugins = {0};
    struct job job = {0};

    assert_int_equal(option_defaults(job_options, &job), 0);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (option_set(job_options, &job, settings[i][0], settings[i][1], "test"))
            fail_msg("%s", fail_reason());
    if (job_choose(&job, &plugins))
        fail_msg("%s", fail_reason());
    struct engine_config site = {
        .job = &job, .plugins = &plugins, .catalog = catalog, .meter = &meter};
    struct engine *engine;
    if (engine_create(&site, &result, &engine))
        fail_msg("%s", fail_reason());
    memset(&site, 0xff, sizeof site); /* the engine has its own */
    assert_int_equal(engine_run(engine, 1, &hooks, &run, &result), -EINTR);
    engine_destroy(engine);
    /* A stop ends it before, too, while memory for rows is touched. */
    job_release(&plugins);
    assert_int_equal(option_set(job_options, &job, "decode", "jpeg:size=8", "test"), 0);
    assert_int_equal(job_choose(&job, &plugins), 0);
    site = (struct engine_config){
        .job = &job, .plugins = &plugins, .catalog = catalog, .meter = &meter, .tick.ask = stopped};
    assert_int_equal(engine_create(&site, &result, &engine), -EINTR);
    engine_destroy(engine);
    job_release(&plugins);
    option_release(job_options, &job);
    catalog_destroy(catalog);
}

/* ---- a wait ends with what it waits for ---- */

struct taker {
    struct batches *batches;
    struct counter thread; /* its number, once it is about to take */
};

static int take(void *argument)
{
    struct taker *taker = argument;
    struct batch batch;

    counter_add(&taker->thread, (uint64_t)gettid());
    return batches_take(taker->batches, &batch);
}

static bool is_asleep(uint64_t thread)
{
    char path[64], state = 0;

    snprintf(path, sizeof path, "/proc/self/task/%llu/stat", (unsigned long long)thread);
    FILE *file = fopen(path, "re");
    const bool read = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    if (file)
        fclose(file);
    return read && state == 'S';
}

/* Without a word the trainer would find each batch at the next look, up to 100 ms late. A machine
 * so slow that this look comes first gets further tries. */
static void a_complete_batch_wakes_the_trainer(void **unused)
{
    enum { TRIES = 100 };
    int tries = 0, taken = 0;

    while (taken == 0 && tries++ < TRIES) {
        struct taker taker = {
            .batches = batches_create(&(struct batches_config){.batch_size = BATCH, .buffers = 2})};
        const struct loader_sink sink = batches_sink(taker.batches);
        struct thread thread = {0};
        batches_reset(taker.batches);
        sink.expect(sink.state, BATCH);
        assert_int_equal(thread_start(&thread, "trainer", take, &taker), 0);
        while (!counter_get(&taker.thread) || !is_asleep(counter_get(&taker.thread)))
            clock_sleep_ns(PAUSE_NS / 10);
        batches_done(taker.batches, 0, BATCH, &(struct batch_account){.samples = BATCH});
        taken = thread_join(&thread);
        batches_destroy(taker.batches);
    }
    assert_int_equal(taken, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_for_records_is_told_while_it_lasts),
        cmocka_unit_test(a_wait_for_a_batch_is_told_while_it_lasts),
        cmocka_unit_test(a_wait_for_memory_is_told_while_it_lasts),
        cmocka_unit_test(a_wait_for_an_epoch_is_short),
        cmocka_unit_test(a_step_is_told_while_it_lasts),
        cmocka_unit_test(the_engine_tells_it),
        cmocka_unit_test(a_complete_batch_wakes_the_trainer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
