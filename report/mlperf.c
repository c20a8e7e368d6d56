/* SPDX-License-Identifier: Apache-2.0 */
#include "report/mlperf.h"

#include "base/bytes.h"
#include "base/json.h"
#include "base/profiles/profiles.h"
#include "report/words.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Rules 3.0: 3.1.2 dataset, 2.1.17 runs, 3.3.2 AU, 3.6.2 what CLOSED may change. */
enum { STEPS_LEAST = 500, MEMORY_TIMES = 5, RUNS = 6, PREFETCH_MOST = 2, THREADS_MOST = 32 };

static const char *const rule_names[] = {
    [MLPERF_WORKLOAD] = "workload", [MLPERF_DATASET] = "dataset", [MLPERF_RUNS] = "runs",
    [MLPERF_EPOCHS] = "epochs",     [MLPERF_AU] = "au",           [MLPERF_STEP] = "step",
    [MLPERF_READS] = "reads",
};

static void copy(const struct ini *ini, const char *key, char *to, size_t bytes)
{
    const char *text = profiles_text(ini, "workload", key);

    snprintf(to, bytes, "%s", text ? text : "");
}

int mlperf_workload_load(const char *name, struct mlperf_workload *workload)
{
    struct ini ini;
    int code = profiles_load("workload", name, NULL, &ini);

    *workload = (struct mlperf_workload){0};
    if (code == 0) {
        copy(&ini, "title", workload->title, sizeof workload->title);
        copy(&ini, "network", workload->network, sizeof workload->network);
        copy(&ini, "accelerator", workload->accelerator, sizeof workload->accelerator);
        copy(&ini, "submission", workload->submission, sizeof workload->submission);
        workload->batch = (uint64_t)profiles_number(&ini, "workload", "batch");
        workload->epochs = (uint64_t)profiles_number(&ini, "workload", "epochs");
        workload->step_s = profiles_number(&ini, "workload", "step-s");
        workload->au_percent = profiles_number(&ini, "workload", "au-percent");
        workload->sample_bytes = profiles_number(&ini, "data", "sample-bytes");
    }
    ini_release(&ini);
    return code;
}

static void rule(struct mlperf *judgement, enum mlperf_rule_name name, bool met, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

static void rule(struct mlperf *judgement, enum mlperf_rule_name name, bool met, const char *format,
                 ...)
{
    struct mlperf_rule *at = &judgement->rules[name];
    va_list arguments;

    assert(name < MLPERF_RULES);
    at->met = met;
    va_start(arguments, format);
    vsnprintf(at->text, sizeof at->text, format, arguments);
    va_end(arguments);
}

void mlperf_judge(const struct mlperf_facts *facts, struct mlperf *judgement)
{
    const struct mlperf_workload *workload = &judgement->workload;
    const double step = facts->step_s / workload->step_s;
    const double by_steps = STEPS_LEAST * (double)workload->batch * facts->accelerators;
    const double by_memory = (double)facts->hosts * (double)facts->memory_bytes * MEMORY_TIMES /
                             fmax(workload->sample_bytes, 1);
    char has[WORDS_BYTES], needs[WORDS_BYTES];

    judgement->samples_needed = ceil(fmax(by_steps, by_memory));
    const bool met = (double)facts->samples >= judgement->samples_needed;
    bytes_text((uint64_t)((double)facts->samples * workload->sample_bytes), has, sizeof has);
    bytes_text((uint64_t)(judgement->samples_needed * workload->sample_bytes), needs, sizeof needs);
    rule(judgement, MLPERF_DATASET, met && facts->is_whole, "dataset %s %s %s (%s)%s", has,
         met ? ">=" : "<", needs,
         by_steps > by_memory ? "500 steps" : "5 x the memory of the hosts",
         facts->is_whole ? "" : ", not read whole");
    rule(judgement, MLPERF_WORKLOAD, strcmp(workload->submission, "closed") == 0,
         "%s is %s workload of v3.0", workload->title,
         strcmp(workload->submission, "closed") == 0 ? "a" : "not a");
    rule(judgement, MLPERF_RUNS, facts->runs == RUNS, "%u of %d runs", facts->runs, RUNS);
    rule(judgement, MLPERF_EPOCHS, facts->epochs == workload->epochs, "%llu of %llu epochs",
         (unsigned long long)facts->epochs, (unsigned long long)workload->epochs);
    rule(judgement, MLPERF_AU, facts->lowest_au_percent >= workload->au_percent,
         "AU %.1f%% %s %g%%", facts->lowest_au_percent,
         facts->lowest_au_percent >= workload->au_percent ? ">=" : "<", workload->au_percent);
    rule(judgement, MLPERF_STEP, step > 0.999 && step < 1.001 && facts->accelerators >= 1,
         "a batch of %.4g of an accelerator's, step %.4g s of %.4g s", facts->accelerators,
         facts->step_s, workload->step_s);
    rule(judgement, MLPERF_READS,
         facts->prefetch <= PREFETCH_MOST && facts->threads <= THREADS_MOST,
         "%llu batches ahead of at most %d, %llu threads of at most %d",
         (unsigned long long)facts->prefetch, PREFETCH_MOST, (unsigned long long)facts->threads,
         THREADS_MOST);
}

int mlperf_check(const struct result *result, struct mlperf *judgement)
{
    const struct job *job = result->job;
    double nominal_ns = 0, batches = 0, lowest = INFINITY;

    for (uint32_t i = 0; i < result->run_count; i++) {
        const double percent = result_run_mlperf_au_percent(&result->runs[i]);
        /* The first of several runs does not count; an AU that is unknown is not met. */
        if (i >= (result->run_count > 1) && !(percent >= lowest))
            lowest = percent;
        for (uint32_t k = 0; k < result->runs[i].epoch_count; k++) {
            const struct result_epoch *epoch = &result->runs[i].epochs[k];
            nominal_ns += (double)epoch->nominal_ns * result->ranks;
            batches += (double)epoch->samples / (double)job->batch_size;
        }
    }
    *judgement = (struct mlperf){0};
    int code = mlperf_workload_load(job->workload, &judgement->workload);
    if (code)
        return code;
    const struct mlperf_facts facts = {
        .accelerators =
            (double)result->ranks * (double)job->batch_size / (double)judgement->workload.batch,
        .hosts = result->nodes ? result->nodes : 1,
        .memory_bytes = result->environment.memory_bytes,
        .samples = result->records,
        .is_whole = !order_rank_samples(&job->order) && job->order.ranks == result->ranks,
        .epochs = job->epochs,
        .prefetch = job->prefetch_batches,
        .threads = result->threads,
        .step_s = batches > 0 ? nominal_ns / batches * 1e-9 : 0,
        .runs = result->run_count,
        .lowest_au_percent = lowest,
    };
    mlperf_judge(&facts, judgement);
    return 0;
}

/* ---- words ---- */

const char *mlperf_sentence(const struct mlperf *judgement, char *text)
{
    size_t used = (size_t)snprintf(text, MLPERF_TEXT_BYTES,
                                   "%s: would not be a submission: ", judgement->workload.title);
    bool any = false;

    for (int i = 0; i < MLPERF_RULES && used < MLPERF_TEXT_BYTES; i++) {
        if (judgement->rules[i].met)
            continue;
        used += (size_t)snprintf(text + used, MLPERF_TEXT_BYTES - used, "%s%s", any ? "; " : "",
                                 judgement->rules[i].text);
        any = true;
    }
    if (!any)
        used = (size_t)snprintf(text, MLPERF_TEXT_BYTES, "%s: meets the rules that are checked",
                                judgement->workload.title);
    if (used < MLPERF_TEXT_BYTES)
        snprintf(text + used, MLPERF_TEXT_BYTES - used,
                 ". In no case an MLPerf result: those are measured by MLPerf's own program");
    return text;
}

/* Return the next GPU with a published rate of this network, and its rate; NULL: no more. */
static const struct profile_shipped *next_gpu(const struct profile_shipped *row,
                                              const char *network, char *title, size_t bytes,
                                              double *rate)
{
    for (; row->family; row++) {
        struct ini ini;
        if (strcmp(row->family, "gpu") != 0)
            continue;
        *rate = 0;
        if (profiles_parse(row->name, row->text, &ini) == 0) {
            const char *name = profiles_text(&ini, "gpu", "title");
            *rate = profiles_number(&ini, network, "samples-per-s");
            snprintf(title, bytes, "%s", name ? name : row->name);
        }
        ini_release(&ini);
        if (*rate > 0)
            return row;
    }
    return NULL;
}

const char *mlperf_feeds(const struct mlperf *judgement, double samples_per_s, char *text)
{
    const struct mlperf_workload *workload = &judgement->workload;
    const double emulated = (double)workload->batch / workload->step_s;
    const struct profile_shipped *row = profile_shipped;
    char count[WORDS_BYTES], each[WORDS_BYTES], title[32];
    double rate;
    size_t used = (size_t)snprintf(text, MLPERF_TEXT_BYTES,
                                   "%s emulated %s of %s samples/s; real GPUs, at their best "
                                   "published rates: ",
                                   words_rate(samples_per_s / emulated, count),
                                   workload->accelerator, words_rate(emulated, each));
    bool any = false;

    while (used < MLPERF_TEXT_BYTES &&
           (row = next_gpu(row, workload->network, title, sizeof title, &rate))) {
        used += (size_t)snprintf(text + used, MLPERF_TEXT_BYTES - used, "%s%s %s of %s",
                                 any ? ", " : "", words_rate(samples_per_s / rate, count), title,
                                 words_rate(rate, each));
        any = true;
        row++;
    }
    if (!any && used < MLPERF_TEXT_BYTES)
        snprintf(text + used, MLPERF_TEXT_BYTES - used, "none are known");
    return text;
}

json_t *mlperf_json(const struct mlperf *judgement, double samples_per_s)
{
    const struct mlperf_workload *workload = &judgement->workload;
    const double emulated = (double)workload->batch / workload->step_s;
    const struct profile_shipped *row = profile_shipped;
    json_t *rules = json_object(), *gpus = json_array();
    bool met = true;
    char title[32];
    double rate;

    for (; (row = next_gpu(row, workload->network, title, sizeof title, &rate)); row++)
        json_array_append_new(gpus, json_pack("{s:o, s:o, s:o}", "gpu", json_text(title), "count",
                                              json_number(samples_per_s / rate),
                                              "gpu_samples_per_s", json_number(rate)));
    for (int i = 0; i < MLPERF_RULES; i++) {
        met = met && judgement->rules[i].met;
        json_object_set_new(rules, rule_names[i],
                            json_pack("{s:b, s:o}", "met", judgement->rules[i].met, "text",
                                      json_text(judgement->rules[i].text)));
    }
    return json_pack("{s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "workload",
                     json_text(workload->title), "mlperf_result", 0, "meets_checked_rules", met,
                     "rules", rules, "samples_needed", json_number(judgement->samples_needed),
                     "emulated_accelerators", json_number(samples_per_s / emulated),
                     "emulated_samples_per_s", json_number(emulated), "real_gpus", gpus);
}
