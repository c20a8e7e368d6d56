/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/run.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stats.h"
#include "base/random.h"
#include "pipeline/jobs/measurement.h"
#include "pipeline/result/gather.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct sitting {
    struct measurement *measurements;
    uint32_t count;
    struct ranks *ranks;
    struct random random;
    uint32_t order[RUN_JOBS_MAX]; /* of the current round */
    uint64_t start_ns, turns;
};

/* Return half the width of the widest interval: of a rival's ratio to the first job, round by
 * round, or of the rate if there is one job. */
static double half_width(const struct sitting *sitting)
{
    const struct result *first = sitting->measurements[0].session.result;
    const uint32_t runs = first->run_count;
    double *rates = memory_array(2 * (size_t)runs, sizeof *rates), widest = 0;

    if (!rates)
        return NAN;
    for (uint32_t i = 0; i < runs; i++)
        rates[i] = result_run_samples_per_s(&first->runs[i]);
    for (uint32_t k = 1; k < sitting->count; k++) {
        const struct result *rival = sitting->measurements[k].session.result;
        for (uint32_t i = 0; i < runs; i++)
            rates[runs + i] = result_run_samples_per_s(&rival->runs[i]);
        const struct paired paired =
            paired_test(rates, rates + runs, runs, first->job->turns, true);
        widest = fmax(widest, (paired.high - paired.low) / 2 / paired.ratio);
    }
    if (sitting->count == 1) {
        const struct stats_summary summary = stats_summarise_until(rates, runs);
        widest = stats_half_width(&summary);
    }
    free(rates);
    return widest;
}

/* Decide whether --runs auto may end, by rank 0's clock and figures. Returns 0, 1 or -errno. */
static int is_enough(struct sitting *sitting)
{
    const struct job *job = sitting->measurements[0].session.job;
    const uint32_t rounds = sitting->measurements[0].session.result->run_count;
    const uint32_t runs = rounds / (uint32_t)job->turns;
    const double half = runs < STATS_UNTIL_FIRST ? NAN : 100 * half_width(sitting);
    const bool is_reached = half <= job_until_percent(job);
    const bool is_late =
        job->until_time_ns && clock_now_ns() - sitting->start_ns >= job->until_time_ns;
    double decided[] = {is_reached, is_late};

    if (rounds % job->turns)
        return 0; /* in the middle of a pair */
    if (job->runs)
        return runs == job->runs;
    if (sitting->ranks->place.rank)
        decided[0] = decided[1] = 0;
    int code = ranks_sum(sitting->ranks, decided, 2);
    for (uint32_t i = 0; i < sitting->count; i++) {
        struct result_sitting *state = &sitting->measurements[i].session.result->sitting;
        state->is_reached = decided[0] > 0;
        state->half_percent = half;
    }
    return code ? code : decided[0] > 0 || decided[1] > 0 || runs == job->until_runs;
}

static void report_end(struct sitting *sitting)
{
    const struct job *job = sitting->measurements[0].session.job;

    for (uint32_t i = 0; i < sitting->count && job->runs == 0; i++) {
        struct result *result = sitting->measurements[i].session.result;
        const struct result_sitting *state = &result->sitting;
        const char *of = sitting->count > 1 ? "of the ratio " : "";
        if (state->is_reached)
            result_notice(result, "--runs auto: the interval %sis within %.2g%% after %u runs", of,
                          state->half_percent, result->run_count);
        else
            result_notice(result,
                          "--until %g%% was NOT reached: the interval %sis within %.2g%% after %u "
                          "runs, at which --until-runs or --until-time ended it",
                          job_until_percent(job), of, state->half_percent, result->run_count);
    }
}

/* Set the order of the next round: newly drawn, or, in the second half of a pair, the reverse of
 * the last order, so that a steady drift cancels. */
static void draw_order(struct sitting *sitting, uint64_t round)
{
    uint32_t *order = sitting->order, count = sitting->count;

    if (round % sitting->measurements[0].session.job->turns % 2) {
        for (uint32_t i = 0; i < count / 2; i++) {
            const uint32_t last = order[count - 1 - i];
            order[count - 1 - i] = order[i];
            order[i] = last;
        }
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    random_shuffle_u32(&sitting->random, order, count);
}

/* Carry out one run of each job. */
static int carry_out_round(struct sitting *sitting)
{
    const uint32_t *order = sitting->order;
    int code = 0;

    draw_order(sitting, sitting->turns / sitting->count);
    for (uint32_t i = 0; i < sitting->count && code == 0; i++) {
        struct measurement *measurement = &sitting->measurements[order[i]];
        code = measurement_next(measurement, sitting->turns++);
        if (sitting->count > 1)
            measurement_suspend(measurement);
    }
    return code;
}

/* Return the samples of the first run, skipped ones included. */
static uint64_t run_samples(const struct result *result)
{
    const struct result_epoch total = result_run_total(&result->runs[0]);

    return total.samples + total.skipped;
}

/* Rates of unlike amounts of work can be compared, but not without saying so. */
static void report_unlike(struct sitting *sitting)
{
    const struct result *first = sitting->measurements[0].session.result;
    const uint64_t samples = run_samples(first);

    for (uint32_t i = 1; i < sitting->count; i++) {
        struct result *rival = sitting->measurements[i].session.result;
        if (run_samples(rival) != samples)
            result_notice(rival,
                          "unlike amounts are compared: %llu samples in a run, against %llu; "
                          "start-up weighs more in the shorter run",
                          (unsigned long long)run_samples(rival), (unsigned long long)samples);
    }
}

static int carry_out_rounds(struct sitting *sitting)
{
    int code = 0, enough = 0;

    for (uint32_t i = 0; i < sitting->count && code == 0; i++) {
        struct session *session = &sitting->measurements[i].session;
        session->result->runs =
            memory_array(job_runs_most(session->job), sizeof *session->result->runs);
        code = session->result->runs ? 0 : -ENOMEM;
    }
    code = ranks_meet(sitting->ranks, code, NULL);
    sitting->start_ns = clock_now_ns();
    while (code == 0 && enough == 0) {
        code = carry_out_round(sitting);
        enough = code ? code : is_enough(sitting);
        code = enough < 0 ? enough : code;
    }
    for (uint32_t i = 0; i < sitting->count && code == 0; i++)
        code = gather_notices(sitting->ranks, sitting->measurements[i].session.result);
    if (code == 0) {
        report_end(sitting);
        report_unlike(sitting);
    }
    return code;
}

/* Draw the seed of the turns, the same on all ranks, and identify the session. */
static int begin_sitting(struct sitting *sitting)
{
    const struct job *job = sitting->measurements[0].session.job;
    struct result_sitting state = {
        .jobs = sitting->count, .is_until = job->runs == 0, .turns = job->turns};
    uint32_t drawn[3];
    char *boot = NULL;
    size_t bytes;

    if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        return fail(EIO, "no random numbers: %s", fail_errno_text(errno));
    double seed = sitting->ranks->place.rank == 0 ? (double)(drawn[2] | 1) : 0;
    int code = ranks_sum(sitting->ranks, &seed, 1);
    state.order_seed = job->order_seed ? job->order_seed : (uint64_t)seed;
    sitting->random = random_start(state.order_seed);
    if (sitting->count == 1)
        state.order_seed = 0;
    snprintf(state.id, sizeof state.id, "%08x%08x", drawn[0], drawn[1]);
    if (file_load("/proc/sys/kernel/random/boot_id", 4096, &boot, &bytes) == 0)
        snprintf(state.boot_id, sizeof state.boot_id, "%.*s", (int)strcspn(boot, "\n"), boot);
    free(boot);
    for (uint32_t i = 0; i < sitting->count; i++) {
        state.job = i;
        state.half_percent = NAN;
        sitting->measurements[i].session.result->sitting = state;
    }
    return code;
}

int run_sitting(const struct job *jobs, uint32_t count, struct ranks *ranks,
                const struct run_observer *observer, struct result *results)
{
    struct ranks alone = ranks_alone();
    struct sitting sitting = {.count = count, .ranks = ranks ? ranks : &alone};
    uint32_t opened = 0;
    int code = 0;

    for (uint32_t i = 0; i < count; i++)
        results[i] = (struct result){.job = &jobs[i], .valid = true};
    sitting.measurements = memory_array(count, sizeof *sitting.measurements);
    if (!sitting.measurements || count > RUN_JOBS_MAX)
        return fail(ENOMEM, "%u jobs cannot be compared in one sitting", count);
    for (uint32_t i = 0; i < count; i++)
        sitting.measurements[i] = (struct measurement){
            .session = {.job = &jobs[i], .ranks = sitting.ranks, .result = &results[i]},
            .observer = observer};
    code = ranks_meet(sitting.ranks, begin_sitting(&sitting), NULL);
    while (code == 0 && opened < count) {
        struct measurement *measurement = &sitting.measurements[opened++];
        code = measurement_open(measurement);
        if (code == 0 && measurement->session.job->calibrate)
            code = measurement_calibrate(measurement);
        if (count > 1)
            measurement_suspend(measurement);
    }
    if (code == 0)
        code = carry_out_rounds(&sitting);
    for (uint32_t i = 0; i < opened; i++)
        code = measurement_close(&sitting.measurements[i], code);
    for (uint32_t i = opened; i < count; i++)
        result_invalid(&results[i], "%s", fail_reason());
    free(sitting.measurements);
    return code;
}

int run_job(const struct job *job, struct ranks *ranks, const struct run_observer *observer,
            struct result *result)
{
    return run_sitting(job, 1, ranks, observer, result);
}

int run_dry(const struct job *job, struct ranks *ranks, const struct run_observer *observer,
            struct result *result)
{
    struct ranks alone = ranks_alone();
    struct measurement measurement = {
        .session = {.job = job, .ranks = ranks ? ranks : &alone, .result = result},
        .observer = observer};

    *result = (struct result){.job = job, .valid = true};
    int code = measurement_open(&measurement);
    if (code == 0)
        code = measurement_make_engine(&measurement);
    return measurement_close(&measurement, code);
}
