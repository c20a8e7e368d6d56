/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how fast the orders of a survey are read from storage. */
#include "cmd/shuffle/shuffle.h"

#include "decode/decoder.h"
#include "pipeline/jobs/run.h"
#include "trainer/trainer.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Differences within the noise of a few batches count as equal randomness. */
static const double SAME_RANDOMNESS = 0.005;

/* Measure one cold run of rank 0. */
static int read_once(const struct survey *survey, struct shuffle_row *row)
{
    struct shuffle_speed *speed = &row->speed;
    struct result result = {0};
    struct job job = {0};
    const struct shuffle_settings *settings = survey->settings;
    const char *texts[][2] = {
        {"data", settings->data},     {"format", settings->format},
        {"shuffle", row->order},      {"decode", plugin_idle(decoder_registry)->name},
        {"reader", settings->reader}, {"trainer", plugin_idle(trainer_registry)->name}};
    int code = option_defaults(job_options, &job);
    for (size_t i = 0; code == 0 && i < sizeof texts / sizeof *texts; i++)
        code = option_set(job_options, &job, texts[i][0], texts[i][1], texts[i][0]);
    job.order.partition = (int)row->partition;
    job.order.remainder = settings->remainder;
    job.order.ranks = row->ranks;
    job.order.seed = settings->seed;
    job.batch_size = settings->batch_size;
    job.read.block_bytes = settings->block_bytes;
    job.order.window = settings->window;
    job.read.iodepth = settings->iodepth;
    job.read.direct = settings->direct;
    job.read.memory_bytes = settings->memory_bytes;
    job.order.limit_samples = settings->limit_samples;
    job.cold.drop_caches = JOB_DROP_YES;
    job.calibrate = false;
    job.runs = 1;

    if (code == 0) {
        code = run_jobs(&job, 1, NULL, NULL, &result);
        if (code == 0 && result.run_count == 0)
            code = fail(EPROTO, "%s: invalid: %s", row->order, result.invalid_reason);
        if (code == 0) {
            const struct result_run *run = &result.runs[0];
            assert(speed->runs < SHUFFLE_RUNS_MOST);
            speed->bytes_per_s[speed->runs] = result_run_bytes_per_s(run);
            speed->samples_per_s[speed->runs] = result_run_samples_per_s(run);
            speed->runs++;
            const char *why = result_cold_unproven(&run->cold);
            if (*result.degraded_reason)
                snprintf(speed->warm_reason, sizeof speed->warm_reason, "DEGRADED: %s",
                         result.degraded_reason);
            else if (why) /* which alone makes it invalid, too */
                snprintf(speed->warm_reason, sizeof speed->warm_reason, "%s", why);
            else if (!result.valid)
                snprintf(speed->warm_reason, sizeof speed->warm_reason, "INVALID: %s",
                         result.invalid_reason);
            else
                speed->cold_runs++;
        }
        result_destroy(&result);
    }
    option_release(job_options, &job);
    if (code == -ENOMEM) {
        snprintf(speed->refused, sizeof speed->refused, "%s", fail_reason());
        return 0;
    }
    return code;
}

static bool is_cold(const struct shuffle_speed *speed)
{
    return speed->runs > 0 && speed->cold_runs == speed->runs;
}

/* Return whether `a` dominates: at least as random and as fast as `b`, and better in one of the
 * two. */
static bool beats(const struct shuffle_row *a, const struct shuffle_row *b)
{
    const double more = shuffle_randomness(a) - shuffle_randomness(b);
    const double faster = a->speed.bytes.median - b->speed.bytes.median;

    return more > -SAME_RANDOMNESS && faster >= 0 && (more > SAME_RANDOMNESS || faster > 0);
}

int shuffle_measure(struct survey *survey)
{
    const uint64_t rounds = survey->settings->runs;
    char text[sizeof survey->line.last], title[160];
    int code = 0;

    for (uint64_t round = 0; code == 0 && round < rounds; round++)
        for (size_t i = 0; code == 0 && i < survey->row_count; i++) {
            struct shuffle_row *row = &survey->rows[i];
            if (row->refused[0] || row->speed.refused[0])
                continue;
            snprintf(text, sizeof text, "reading, round %u/%u: %s", (unsigned)round + 1,
                     (unsigned)rounds, shuffle_title(survey, row, title, sizeof title));
            line_show(&survey->line, text);
            code = read_once(survey, row);
        }
    line_clear(&survey->line);
    for (size_t i = 0; i < survey->row_count; i++) {
        struct shuffle_speed *speed = &survey->rows[i].speed;
        speed->bytes = stats_summarise(speed->bytes_per_s, speed->runs);
        speed->samples = stats_summarise(speed->samples_per_s, speed->runs);
    }
    /* Runs that were not cold say nothing about storage: ignore them if there are cold ones. */
    const size_t count = survey->row_count;
    bool any_cold = false;
    for (size_t i = 0; i < count; i++)
        any_cold = any_cold || is_cold(&survey->rows[i].speed);
    for (size_t i = 0; i < count; i++) {
        struct shuffle_speed *speed = &survey->rows[i].speed;
        speed->on_front = speed->runs > 0 && !isnan(shuffle_randomness(&survey->rows[i])) &&
                          (!any_cold || is_cold(speed));
        for (size_t k = 0; k < count && speed->on_front; k++)
            if (survey->rows[k].speed.runs && (!any_cold || is_cold(&survey->rows[k].speed)) &&
                beats(&survey->rows[k], &survey->rows[i]))
                speed->on_front = false;
    }
    return code;
}
