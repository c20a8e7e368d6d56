/* SPDX-License-Identifier: Apache-2.0
 * What two jobs at once did to each other, round by round. */
#include "cmd/run/beside.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/stats.h"
#include "report/load.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rounds {
    size_t count;
    double *walls[BESIDE_MEMBERS]; /* seconds of each round */
    double *samples[BESIDE_MEMBERS];
};

/* Return the sum of a figure over a run's epochs. */
static double sum_of(const json_t *run, const char *key)
{
    const json_t *epoch;
    double sum = 0;
    size_t i;

    json_array_foreach(json_object_get(run, "epochs"), i, epoch) sum += load_number(epoch, key);
    return sum;
}

static int take_rounds(struct rounds *rounds, json_t *const documents[BESIDE_MEMBERS])
{
    rounds->count = json_array_size(json_object_get(documents[0], "runs"));
    for (int i = 0; i < BESIDE_MEMBERS; i++) {
        const json_t *runs = json_object_get(documents[i], "runs");
        if (json_array_size(runs) != rounds->count || rounds->count == 0)
            return fail(ENODATA, "the jobs did not make the same runs");
        rounds->walls[i] = memory_array(rounds->count, sizeof(double));
        rounds->samples[i] = memory_array(rounds->count, sizeof(double));
        if (!rounds->walls[i] || !rounds->samples[i])
            return -ENOMEM;
        for (size_t k = 0; k < rounds->count; k++) {
            rounds->walls[i][k] = sum_of(json_array_get(runs, k), "wall_s");
            rounds->samples[i][k] = sum_of(json_array_get(runs, k), "samples");
        }
    }
    return 0;
}

static double mean(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static double rate(const struct rounds *rounds, int member)
{
    return mean(rounds->samples[member], rounds->count) /
           mean(rounds->walls[member], rounds->count);
}

static void put_ratio(json_t *object, const char *key, const struct paired *paired)
{
    char name[64];

    json_put_number(object, key, paired->ratio);
    snprintf(name, sizeof name, "%s_low95", key);
    json_put_number(object, name, paired->low);
    snprintf(name, sizeof name, "%s_high95", key);
    json_put_number(object, name, paired->high);
}

static json_t *json_job(const struct rounds *rounds, int job, const json_t *document)
{
    const int beside = job + BESIDE_JOBS;
    const struct paired paired =
        paired_test(rounds->walls[job], rounds->walls[beside], rounds->count, 1, false);
    const char *label = load_text(document, "label");
    json_t *object = json_object();

    /* Drop ", alone" from the label. */
    const char *comma = label ? strrchr(label, ',') : NULL;
    json_object_set_new(object, "label",
                        comma ? json_text_of(label, (size_t)(comma - label)) : json_text(label));
    json_put_number(object, "alone_s", mean(rounds->walls[job], rounds->count));
    json_put_number(object, "beside_s", mean(rounds->walls[beside], rounds->count));
    json_put_number(object, "alone_samples_per_s", rate(rounds, job));
    json_put_number(object, "beside_samples_per_s", rate(rounds, beside));
    put_ratio(object, "slow_down", &paired);
    return object;
}

/* Both start together: the time at once lasts until the later one ends. */
static int put_both(json_t *object, const struct rounds *rounds)
{
    double *in_turn = memory_array(2 * rounds->count, sizeof *in_turn);
    double *at_once = in_turn ? in_turn + rounds->count : NULL, shared = 0;

    if (!in_turn)
        return -ENOMEM;
    for (size_t i = 0; i < rounds->count; i++) {
        in_turn[i] = rounds->walls[0][i] + rounds->walls[1][i];
        at_once[i] = fmax(rounds->walls[2][i], rounds->walls[3][i]);
        shared += fmin(rounds->walls[2][i], rounds->walls[3][i]) / at_once[i];
    }
    const struct paired gain = paired_test(at_once, in_turn, rounds->count, 1, false);
    json_put_number(object, "in_turn_s", mean(in_turn, rounds->count));
    json_put_number(object, "at_once_s", mean(at_once, rounds->count));
    json_put_number(object, "overlap_percent", 100 * shared / (double)rounds->count);
    put_ratio(object, "gain", &gain);
    free(in_turn);
    return 0;
}

json_t *beside_json(json_t *const documents[BESIDE_MEMBERS], bool has_shared_data)
{
    struct rounds rounds = {0};
    json_t *object = json_object();
    int code = take_rounds(&rounds, documents);

    json_object_set_new(object, "rounds", json_integer((json_int_t)rounds.count));
    json_object_set_new(object, "same_data", json_boolean(has_shared_data));
    json_t *jobs = json_put_new(object, "jobs", json_array());
    for (int i = 0; i < BESIDE_JOBS && code == 0; i++)
        json_array_append_new(jobs, json_job(&rounds, i, documents[i]));
    if (code == 0)
        code = put_both(object, &rounds);
    for (int i = 0; i < BESIDE_MEMBERS; i++) {
        free(rounds.walls[i]);
        free(rounds.samples[i]);
    }
    if (code == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* ---- text ---- */

static void print_interval(FILE *stream, const json_t *object, const char *key)
{
    char name[64];

    snprintf(name, sizeof name, "%s_low95", key);
    const double low = load_number(object, name);
    snprintf(name, sizeof name, "%s_high95", key);
    const double high = load_number(object, name);
    if (isfinite(low) && isfinite(high))
        fprintf(stream, " (%.2f .. %.2f)", low, high);
}

void beside_text(FILE *stream, const json_t *beside)
{
    const json_t *job;
    char alone[WORDS_BYTES], together[WORDS_BYTES];
    size_t i;

    fprintf(stream,
            "Side by side: %.0f rounds of each job alone and both at once\n\n"
            "  %-30s %12s %12s  %s\n",
            load_number(beside, "rounds"), "samples/s", "alone", "beside", "slow-down");
    json_array_foreach(json_object_get(beside, "jobs"), i, job)
    {
        const char *label = load_text(job, "label");
        words_rate(load_number(job, "alone_samples_per_s"), alone);
        words_rate(load_number(job, "beside_samples_per_s"), together);
        fprintf(stream, "  %-30.30s %12s %12s  %.2f", escape_shown(label ? label : "-"), alone,
                together, load_number(job, "slow_down"));
        print_interval(stream, job, "slow_down");
        fputc('\n', stream);
    }
    const double gain = load_number(beside, "gain");
    fprintf(stream, "\n  Both     %.3g s one after the other, %.3g s at once: %.2f times as fast",
            load_number(beside, "in_turn_s"), load_number(beside, "at_once_s"), gain);
    print_interval(stream, beside, "gain");
    fprintf(stream, "\n  Overlap  %.0f%% of the time at once both were at work\n",
            load_number(beside, "overlap_percent"));
    if (load_true(beside, "same_data"))
        fputs("  Caches   both read the same files: what one brings into memory the other finds "
              "there\n",
              stream);
}
