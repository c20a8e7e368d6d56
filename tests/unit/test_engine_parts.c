/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of an epoch add up to its time: whatever the trainer is idle for, before the first
 * batch or between two steps, is in wait_ns. What takes long is made long by sleeps.
 */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/option.h"
#include "pipeline/engine/engine.h"
#include "pipeline/evidence/validity.h"

#include <math.h>

enum { RECORDS = 80, RECORD_BYTES = 4096, EPOCHS = 2, TRIES = 50 };

/* Longer than a look at a wait, so that hooks are called. */
static const uint64_t ORDER_NS = 250000000, HOOK_NS = 120000000, STEP_NS = 30000000;

/* ---- a shuffle whose order takes long ---- */

static const struct shuffle_ops *quick;

static int begin_slowly(void *state, uint64_t epoch)
{
    clock_sleep_ns(ORDER_NS);
    return quick->begin(state, epoch);
}

/* ---- a trainer that knows how long its steps took ---- */

static int step(void *state, const struct trainer_batch *batch, struct trainer_times *times)
{
    const uint64_t start_ns = clock_now_ns();

    clock_sleep_ns(STEP_NS);
    times->compute_ns = clock_now_ns() - start_ns;
    return 0;
}

static const struct trainer_ops stepping = {.plugin = {.name = "stepping"}, .step = step};

/* ---- a hook that takes long ---- */

static int linger(void *context, const struct result_epoch *epoch, uint64_t draws)
{
    clock_sleep_ns(HOOK_NS);
    return 0;
}

/* ---- the epochs ---- */

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

static void set(struct job *job, const char *name, const char *value)
{
    if (option_set(job_options, job, name, value, "test"))
        fail_msg("%s", fail_reason());
}

/* trainer: NULL for `stepping`. limit: samples of an epoch. */
static void run(const char *trainer, const char *overlap, const char *shuffle, const char *limit,
                struct result_epoch *epochs)
{
    const struct engine_hooks hooks = {.tick = linger};
    struct trainer own = {.ops = &stepping};
    struct catalog *catalog = make_catalog();
    struct result result = {.valid = true};
    struct result_run run = {.epochs = epochs};
    struct job_plugins plugins = {0};
    struct shuffle_ops slow;
    struct job job = {0};

    assert_int_equal(option_defaults(job_options, &job), 0);
    set(&job, "reader", "null");
    set(&job, "shuffle", shuffle);
    set(&job, "limit-samples-per-rank", limit);
    set(&job, "decode", "none");
    set(&job, "batch-size", "8");
    set(&job, "decode-threads", "1");
    set(&job, "memory", "64m");
    set(&job, "overlap-epochs", overlap);
    set(&job, "trainer", trainer ? trainer : "none");
    if (job_choose(&job, &plugins))
        fail_msg("%s", fail_reason());
    quick = (const struct shuffle_ops *)(const void *)plugins.shuffle.plugin;
    slow = *quick;
    slow.begin = begin_slowly;
    plugins.shuffle.plugin = &slow.plugin;
    const struct engine_config site = {
        .job = &job, .plugins = &plugins, .catalog = catalog, .trainer = trainer ? NULL : &own};
    struct engine *engine;
    if (engine_create(&site, &result, &engine) || engine_run(engine, EPOCHS, &hooks, &run, &result))
        fail_msg("%s", fail_reason());
    engine_destroy(engine);
    plugins.shuffle.plugin = &quick->plugin;
    job_release(&plugins);
    option_release(job_options, &job);
    catalog_destroy(catalog);
}

static uint64_t sum_ns(const struct result_epoch *epoch)
{
    uint64_t sum = 0;

    for (int phase = 0; phase < RESULT_PHASES; phase++)
        sum += result_epoch_phase_ns(epoch, (enum result_phase)phase);
    return sum;
}

/* Each try: parts are at most the whole. A machine that stops this thread between two looks at the
 * clock gets further tries; what is left out always is left out in all of them. */
static void parts_add_up(const char *trainer, const char *overlap)
{
    uint64_t left_ns = UINT64_MAX;
    int tries = 0;

    while (left_ns > STEP_NS / 2 && tries++ < TRIES) {
        struct result_epoch epochs[EPOCHS] = {0};
        run(trainer, overlap, "epoch", "all", epochs);
        left_ns = 0;
        for (int i = 0; i < EPOCHS; i++) {
            const struct result_epoch *epoch = &epochs[i];
            assert_true(sum_ns(epoch) <= epoch->wall_ns);
            assert_true(epoch->wait_ns >= epoch->first_batch_ns);
            assert_true(epoch->waits.trainer_input_ns == epoch->wait_ns);
            assert_int_equal(epoch->read_samples, epoch->read_ns ? RECORDS : 0);
            assert_true(overlap[0] == 'y' || epoch->read_ns + epoch->order_ns <= epoch->wall_ns);
            if (epoch->wall_ns - sum_ns(epoch) > left_ns)
                left_ns = epoch->wall_ns - sum_ns(epoch);
        }
        assert_true(epochs[0].order_ns >= ORDER_NS && epochs[0].order_ns <= epochs[0].wait_ns);
        assert_int_equal(epochs[0].limit, RESULT_LIMIT_HARNESS);
    }
    if (left_ns > STEP_NS / 2)
        fail_msg("trainer %s, overlap %s: %.3f s of an epoch are in no part of it",
                 trainer ? trainer : "of a job", overlap, (double)left_ns * 1e-9);
}

static void parts_of_a_run_add_up(void **unused)
{
    parts_add_up("none", "no");
    parts_add_up("none", "yes");
}

static void parts_of_a_replay_add_up(void **unused)
{
    parts_add_up("replay:rate=250", "no");
    parts_add_up("replay:rate=250", "yes");
}

/* As networks are, by `run` and `train`. */
static void parts_of_a_job_with_its_own_trainer_add_up(void **unused)
{
    parts_add_up(NULL, "no");
    parts_add_up(NULL, "yes");
}

/* A shuffle buffer of 20 is full when an epoch ends after 40 of 80 samples; the last draw may have
 * left a place. */
static void records_that_are_not_drawn_are_counted(void **unused)
{
    struct result_epoch epochs[EPOCHS] = {0};

    run("none", "no", "buffer:20", "40", epochs);
    for (int i = 0; i < EPOCHS; i++) {
        assert_int_equal(epochs[i].samples, 40);
        assert_in_range(epochs[i].read_samples, 59, 60);
    }
}

/* ---- by hand ---- */

static void expect_waited(const struct meter *meter, uint64_t ns)
{
    assert_int_equal(counter_get(&meter->counts[METER_TRAINER_BATCH_NS]), ns);
}

static void idle_time_is_waited_time(void **unused)
{
    struct meter meter = {0};
    struct account account = {.meter = &meter, .idle_ns = 1000};

    account_order(&account, 1300); /* not yet made */
    account_order(&account, 1400);
    expect_waited(&meter, 400);
    account_idle(&account, 1700); /* no batch yet */
    assert_int_equal(account_step_begin(&account, 2000), 1000);
    assert_int_equal(account.order_ns, 400);
    expect_waited(&meter, 1000);
    account.idle_ns = 5000;
    account_idle(&account, 5100);
    assert_int_equal(account_step_begin(&account, 5250), 250);
    expect_waited(&meter, 1250);
}

/* 1,000 samples in these batches, read in 4 us; so many were taken when a quarter of them was, and
 * then. */
static uint64_t steady_samples(uint64_t batches, uint64_t taken_first, uint64_t taken)
{
    const struct loader_figures loader = {.head_ns = 900, .quarter_ns = 1000, .read_end_ns = 4000};
    struct result_epoch epoch = {.samples = 1000, .batches = batches};
    struct account account = {.epoch = &epoch};

    pace_add(&account.taken, 0, 0);
    pace_add(&account.taken, 1000, taken_first);
    pace_add(&account.taken, 4000, taken);
    account_reads(&account, &loader);
    assert_int_equal(epoch.read_head_ns, 900);
    assert_int_equal(epoch.read_rest_ns, 3000);
    assert_int_equal(epoch.steady_ns, epoch.steady_samples ? 3000 : 0);
    return epoch.steady_samples;
}

/* Memory that fills or empties while it is measured is no steady state, nor is a handful of
 * batches. */
static void a_steady_state_is_as_long_as_its_batches(void **unused)
{
    assert_int_equal(steady_samples(20, 250, 1000), 750);
    assert_int_equal(steady_samples(20, 240, 920), 750);
    assert_int_equal(steady_samples(20, 240, 910), 0);
    assert_int_equal(steady_samples(20, 100, 920), 750);
    assert_int_equal(steady_samples(20, 100, 930), 0);
    assert_int_equal(steady_samples(19, 250, 1000), 0);
}

/* A timeline shows no moment twice: what a trainer takes for a part of its step was no wait. */
static void what_is_in_a_step_is_no_wait(void **unused)
{
    struct result_epoch epoch = {0};
    struct meter meter = {0};
    struct account account = {.meter = &meter, .epoch = &epoch};

    account_step_begin(&account, 300); /* the batch was ready 100 before */
    account_step(&account, &(struct trainer_times){.wait_ns = 200, .compute_ns = 800});
    account.idle_ns = 1000;
    expect_waited(&meter, 300);
    account_idle(&account, 1150);
    account_idle(&account, 1200); /* told while it lasts */
    expect_waited(&meter, 400);
    account_step_begin(&account, 1250);
    account_step(&account, &(struct trainer_times){.wait_ns = 250, .compute_ns = 750});
    account.idle_ns = 2000;
    expect_waited(&meter, 450);
    assert_int_equal(counter_get(&meter.counts[METER_TRAINER_BUSY_NS]), 1550);
    /* A device reports the waits of earlier steps: all but 60 of this one is computed through. */
    account_step_begin(&account, 2500);
    account_step(&account, &(struct trainer_times){0});
    account.idle_ns = 2510;
    account_step_begin(&account, 3010);
    account_step(&account, &(struct trainer_times){.wait_ns = 60});
    expect_waited(&meter, 950);
    account.idle_ns = 3020;
    account_step_begin(&account, 3460); /* all of that was told before */
    expect_waited(&meter, 950);
    account_step(&account, &(struct trainer_times){.wait_ns = 500});
    expect_waited(&meter, 1010); /* 450 + 60 + 500 */
}

/* MLPerf's AU leaves out the first step: 3 of 4 steps, without a pause. */
static void the_first_step_ends_when_it_is_computed(void **unused)
{
    const struct batch batch = {.count = 10, .account = {.samples = 10}};
    const struct trainer_times device = {.upload_ns = 20, .compute_ns = 500}, none = {0};
    struct result_epoch epoch = {0};
    struct account account = {.epoch = &epoch};

    for (uint64_t i = 0; i < 4; i++) { /* two are ahead of the device */
        account_step_begin(&account, 1000 + 100 * i);
        account.idle_ns = 1030 + 100 * i;
        account_batch(&account, &batch, 1000 + 100 * i);
        account_step(&account, i < 2 ? &none : &device);
    }
    account_step(&account, &device);
    account_step(&account, &device);
    epoch.wall_ns = 1520 + 3 * 520;
    assert_int_equal(epoch.first_compute_ns, 500);
    assert_int_equal(epoch.first_step_ns, 1520);
    assert_true(fabs(result_epoch_mlperf_au_percent(&epoch) - 100 * 500.0 / 520) < 1e-9);

    /* On the host, it has ended when its call returns. */
    epoch = (struct result_epoch){0};
    account = (struct account){.epoch = &epoch};
    account_step_begin(&account, 1000);
    account.idle_ns = 1800;
    account_batch(&account, &batch, 1000);
    account_step(&account, &(struct trainer_times){.compute_ns = 750});
    assert_int_equal(epoch.first_step_ns, 1800);
    assert_int_equal(epoch.first_compute_ns, 750);
}

/* What the first batch holds was read before the time of the others began. */
static void batches_after_the_first_have_their_own_time(void **unused)
{
    struct result_epoch epoch = {.start_ns = 5000};
    struct account account = {.epoch = &epoch};
    const struct batch batch = {.count = 10, .account = {.samples = 10, .record_bytes = 700}};

    account_batch(&account, &batch, 6000);
    assert_int_equal(epoch.first_batch_ns, 1000);
    assert_int_equal(epoch.paced_samples + epoch.paced_bytes + epoch.paced_ns, 0);
    assert_true(isnan(result_epoch_paced_samples_per_s(&epoch)));
    for (uint64_t i = 1; i < 5; i++)
        account_batch(&account, &batch, 6000 + 100 * i);
    assert_int_equal(epoch.samples, 50);
    assert_int_equal(epoch.paced_samples, 40);
    assert_int_equal(epoch.paced_bytes, 2800);
    assert_int_equal(epoch.paced_ns, 400);
    assert_true(fabs(result_epoch_paced_samples_per_s(&epoch) - 1e8) < 1e-3);
    assert_true(fabs(result_epoch_paced_bytes_per_s(&epoch) - 7e9) < 1e-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_run_add_up),
        cmocka_unit_test(parts_of_a_replay_add_up),
        cmocka_unit_test(parts_of_a_job_with_its_own_trainer_add_up),
        cmocka_unit_test(records_that_are_not_drawn_are_counted),
        cmocka_unit_test(idle_time_is_waited_time),
        cmocka_unit_test(a_steady_state_is_as_long_as_its_batches),
        cmocka_unit_test(what_is_in_a_step_is_no_wait),
        cmocka_unit_test(the_first_step_ends_when_it_is_computed),
        cmocka_unit_test(batches_after_the_first_have_their_own_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
