/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "cmd/ramp/ramp.h"

#include <math.h>

/* Search on storage that holds loads below `capacity` and delivers `share` of it when there are
 * more; each run errs with this probability. Returns the number of runs, without previews. */
static uint32_t search_for(struct ramp_search *search, double capacity, double share, double errs)
{
    struct random random = random_start(7);
    uint32_t runs = 0, steps = 0;

    for (struct ramp_step step; (step = ramp_search_next(search)).load > 0; steps++) {
        const bool wrong = (double)random_next(&random) < errs * (double)UINT64_MAX;
        ramp_search_add(search, step, (step.load < capacity) != wrong,
                        fmin(step.load, share * capacity));
        runs += !step.preview;
        assert_in_range(steps, 0, 1000);
    }
    return runs;
}

/* From any start the bracket contains the capacity and is as narrow as requested. */
static void the_capacity_is_found(void **unused)
{
    const double capacities[] = {0.013, 0.5, 1, 1.01, 3.7, 64, 5000};
    const double shares[] = {0.01, 0.5, 0.9, 0.98, 1, 1.02, 1.3, INFINITY};

    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++)
        for (size_t j = 0; j < sizeof shares / sizeof *shares; j++) {
            struct ramp_search search = {.from = 1, .to = 65536, .precision = 0.02, .runs = 3};
            const uint32_t runs = search_for(&search, capacities[i], shares[j], 0);
            const struct ramp_answer answer = ramp_search_answer(&search);
            assert_true(answer.held < capacities[i] && capacities[i] <= answer.failed);
            assert_true(answer.failed <= answer.held * 1.02);
            assert_true(answer.low == answer.held && answer.high == answer.failed);
            assert_in_range(runs, 4, 20);
        }
}

/* What an overloaded run delivered leads to the answer: a run just below it, one just above, and
 * a second of each. */
static void steady_storage_takes_four_runs(void **unused)
{
    const double capacities[] = {1.3, 3.7, 61, 5000};

    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        struct ramp_search search = {.from = 1, .to = 65536, .precision = 0.02, .runs = 3};
        assert_int_equal(search_for(&search, capacities[i], 1, 0), 4);
    }
}

/* Previews lead the search, but the answer stands on runs. */
static void a_wrong_preview_is_overturned(void **unused)
{
    struct ramp_search search = {.from = 1, .to = 65536, .precision = 0.02, .runs = 3};
    struct ramp_step step;

    while ((step = ramp_search_next(&search)).preview) /* 32 holds, they say, 64 does not */
        ramp_search_add(&search, step, step.load < 64, step.load);
    search_for(&search, 37, INFINITY, 0);
    struct ramp_answer answer = ramp_search_answer(&search);
    assert_true(answer.held < 37 && answer.failed >= 37 && answer.failed <= answer.held * 1.02);

    search = (struct ramp_search){.from = 1, .to = 65536, .precision = 0.02, .runs = 3};
    while ((step = ramp_search_next(&search)).preview)
        ramp_search_add(&search, step, step.load < 4, step.load);
    search_for(&search, 37, INFINITY, 0);
    answer = ramp_search_answer(&search);
    assert_true(answer.held < 37 && answer.failed >= 37 && answer.failed <= answer.held * 1.02);
}

/* One disturbed run does not decide; the interval reports that runs disagreed. */
static void one_run_decides_nothing(void **unused)
{
    struct ramp_search search = {.from = 4, .to = 100, .precision = 0.5, .runs = 3};

    ramp_search_add(&search, (struct ramp_step){.load = 4}, false, 4);
    ramp_search_add(&search, (struct ramp_step){.load = 4}, true, 4);
    assert_true(ramp_search_next(&search).load == 4); /* they disagree */
    ramp_search_add(&search, (struct ramp_step){.load = 4}, true, 4);
    search_for(&search, 8, INFINITY, 0);
    const struct ramp_answer answer = ramp_search_answer(&search);
    assert_true(answer.held >= 4 && answer.held < 8 && answer.failed >= 8);
    assert_true(answer.low == 0); /* not all runs held at 4 */
    assert_true(answer.high == answer.failed);
}

static void runs_that_err_widen_the_interval(void **unused)
{
    struct ramp_search search = {.from = 1, .to = 65536, .precision = 0.02, .runs = 5};

    search_for(&search, 37, 1, 0.1);
    const struct ramp_answer answer = ramp_search_answer(&search);
    assert_true(answer.low < 37 && answer.high >= 37);
    assert_true(answer.low <= answer.held && answer.failed <= answer.high);
}

/* Storage that is never fast enough, or always, ends the search too. */
static void the_ends_are_reached(void **unused)
{
    struct ramp_search fast = {.from = 1, .to = 100, .precision = 0.02, .runs = 1};
    struct ramp_search slow = fast;

    search_for(&fast, INFINITY, 1, 0);
    struct ramp_answer answer = ramp_search_answer(&fast);
    assert_true(answer.held == 100 && answer.failed == 0 && isinf(answer.high));
    search_for(&slow, 0, 1, 0);
    answer = ramp_search_answer(&slow);
    assert_true(answer.held == 0 && answer.failed > 0 && answer.failed < 0.002 && answer.low == 0);
}

/* ---- what a run says ---- */

/* 110 batches of 4 samples of 1,000 bytes; at load 10 one is due every 10 ms. */
static const struct result_epoch played = {.samples = 440,
                                           .record_bytes = 440000,
                                           .batches = 110,
                                           .nominal_ns = 1100000000,
                                           .first_batch_ns = 50000000,
                                           .paced_samples = 436,
                                           .paced_bytes = 436000};

/* late_ns: of the last batch; those after the warm-up are later each time. */
static struct ramp_point point_of(const struct result_epoch *epoch, uint64_t late_ns)
{
    struct result_epoch copy = *epoch;
    struct result_run run = {.epochs = &copy, .epoch_count = 1};
    double step_ns;

    for (uint64_t i = 1; i <= 100; i++)
        histogram_add(&run.batch_late_ns, late_ns * i / 100);
    const struct ramp_point point =
        ramp_point_of((struct ramp_step){.load = 10}, &run, 10, &step_ns);
    assert_true(fabs(step_ns - 1e8) < 1e-3);
    assert_true(fabs(point.offered_samples_per_s - 400) < 1e-9);
    assert_int_equal(point.batches, 100);
    return point;
}

/* n batches are n - 1 intervals, whether they come as they are due or late: a batch every 20 ms is
 * 200 samples a second, not 110 batches in 109 intervals. */
static void the_rate_is_of_the_intervals(void **unused)
{
    struct result_epoch epoch = played;

    epoch.paced_ns = UINT64_C(109) * 10000000;
    epoch.wall_ns = epoch.first_batch_ns + UINT64_C(110) * 10000000; /* the last one is held */
    struct ramp_point point = point_of(&epoch, 0);
    assert_true(fabs(point.samples_per_s - 400) < 1e-9 && point.holds);
    assert_true(fabs(point.bytes_per_s - 400000) < 1e-6);
    epoch.paced_ns = UINT64_C(109) * 20000000;
    epoch.wall_ns = epoch.first_batch_ns + epoch.paced_ns; /* it was due long ago */
    point = point_of(&epoch, 1000000000);
    assert_true(fabs(point.samples_per_s - 200) < 1e-9 && !point.holds);
    assert_true(fabs(point.bytes_per_s - 200000) < 1e-6);
}

/* The first batch comes with a whole window: of batches that are due every 10 ms, storage that
 * takes 12.5 ms for each is in time until those are used up, in this run to its end. */
static void what_was_read_ahead_is_no_rate(void **unused)
{
    struct result_epoch epoch = played;

    epoch.paced_ns = UINT64_C(109) * 10000000;
    epoch.read_samples = 440;
    epoch.read_ns = UINT64_C(110) * 12500000;
    struct ramp_point point = point_of(&epoch, 0);
    assert_true(point.is_behind && !point.holds);
    assert_true(fabs(point.read_samples_per_s - 320) < 1e-9);
    assert_true(fabs(point.samples_per_s - 320) < 1e-9);
    assert_true(fabs(point.bytes_per_s - 320000) < 1e-6);
    /* Later ones come in a burst: 4 times as fast as they are read. */
    epoch.paced_ns /= 4;
    point = point_of(&epoch, 1000000000);
    assert_true(fabs(point.samples_per_s - 320) < 1e-9 && !point.holds);
    /* Read as fast as taken, but for the first batch; and in a moment, from memory. */
    epoch.paced_ns = UINT64_C(109) * 10000000;
    epoch.read_ns = UINT64_C(110) * 10000000;
    point = point_of(&epoch, 0);
    assert_true(fabs(point.samples_per_s - 400) < 1e-9 && point.holds && !point.is_behind);
    epoch.read_ns = 1;
    assert_true(point_of(&epoch, 0).holds);
    /* A shuffle buffer was read as well, of which the run drew nothing. */
    epoch.read_ns = UINT64_C(130) * 10000000;
    epoch.read_samples = 440 + 80;
    point = point_of(&epoch, 0);
    assert_true(fabs(point.read_samples_per_s - 400) < 1e-9 && point.holds);
    epoch.read_ns = 0; /* unknown */
    point = point_of(&epoch, 0);
    assert_true(isnan(point.read_samples_per_s) && point.holds);
    assert_true(fabs(point.samples_per_s - 400) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_capacity_is_found),
        cmocka_unit_test(steady_storage_takes_four_runs),
        cmocka_unit_test(a_wrong_preview_is_overturned),
        cmocka_unit_test(one_run_decides_nothing),
        cmocka_unit_test(runs_that_err_widen_the_interval),
        cmocka_unit_test(the_ends_are_reached),
        cmocka_unit_test(the_rate_is_of_the_intervals),
        cmocka_unit_test(what_was_read_ahead_is_no_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
