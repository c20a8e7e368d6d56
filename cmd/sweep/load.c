/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the figures of a sweep from the results of the swept commands. */
#include "cmd/sweep/sweep.h"

#include "base/fail.h"
#include "base/random.h"
#include "report/load.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static void copy(char *to, size_t bytes, const char *text)
{
    snprintf(to, bytes, "%s", text ? text : "");
}

/* Return the sum of a figure over all epochs of all runs. */
static double sum_of_epochs(const json_t *job, const char *key)
{
    const json_t *runs = json_object_get(job, "runs"), *run, *epoch;
    double sum = 0;
    size_t i, k;

    json_array_foreach(runs, i, run)
    {
        json_array_foreach(json_object_get(run, "epochs"), k, epoch)
        {
            const double value = load_number(epoch, key);
            sum += isfinite(value) ? value : 0;
        }
    }
    return sum;
}

static void read_parts(const json_t *job, struct sweep_figures *figures)
{
    static const char *const keys[SWEEP_PARTS] = {"wait_s",     "upload_s", "compute_s",
                                                  "exchange_s", "update_s", "start_barrier_s"};

    for (int i = 0; i < SWEEP_PARTS; i++)
        figures->parts_s[i] = sum_of_epochs(job, keys[i]);
    figures->parts_s[SWEEP_BARRIER] += sum_of_epochs(job, "stop_barrier_s");
    figures->wall_s = sum_of_epochs(job, "wall_s") + figures->parts_s[SWEEP_BARRIER];
}

static uint32_t count_of(const json_t *object, const char *path)
{
    const double count = load_number(object, path);

    return count >= 1 && count < UINT32_MAX ? (uint32_t)count : 1;
}

/* What was at the path. Results of earlier versions have no identity; those of infer, and of orders
 * of no data, no set. */
static void read_set(const json_t *job, struct sweep_figures *figures)
{
    const char *path = load_text(job, "dataset.path"), *format = load_text(job, "dataset.format");
    const char *files = load_text(job, "dataset.identity"), *host = load_text(job, "place.host");

    figures->set_samples = load_number(job, "dataset.samples");
    figures->set_bytes = load_number(job, "dataset.record_bytes");
    if (path && format && isfinite(figures->set_samples) && isfinite(figures->set_bytes))
        figures->set = random_hash_text(random_hash_text(1, path), format);
    figures->files = files && host ? random_hash_text(1, files) | 1 : 0;
    figures->host = random_hash_text(1, host ? host : "");
}

int sweep_read_job(const json_t *document, struct sweep_figures *figures)
{
    const json_t *job = json_array_get(json_object_get(document, "jobs"), 0);

    if (!json_is_object(job))
        return fail(EINVAL, "it has no jobs");
    const char *degraded = load_degraded(job);
    figures->is_valid = load_true(job, "valid") && !degraded;
    copy(figures->reason, sizeof figures->reason,
         degraded ? degraded : load_text(job, "invalid_reason"));
    figures->samples_per_s = load_number(job, "summary.samples_per_s");
    copy(figures->limit, sizeof figures->limit, load_text(job, "summary.limit"));
    copy(figures->cache, sizeof figures->cache, load_text(job, "summary.cache_before"));
    figures->ranks = count_of(job, "engine.ranks");
    figures->nodes = count_of(job, "engine.nodes");
    read_parts(job, figures);
    read_set(job, figures);
    return 0;
}

/* An inference uses caches as it finds them: where its bytes came from. "": unknown. */
static const char *source_of(const json_t *row)
{
    const double percent = load_number(row, "storage_percent");

    return !isfinite(percent) ? ""
           : percent >= 98    ? "all from storage"
           : percent <= 2     ? "all in memory"
                              : "partly in memory";
}

int sweep_read_inference(const json_t *document, struct sweep_figures *figures)
{
    const json_t *row = json_array_get(json_object_get(document, "batch_sizes"), 0);

    if (!json_is_object(row))
        return fail(EINVAL, "it has no batch sizes");
    figures->is_valid = !load_degraded(document);
    copy(figures->reason, sizeof figures->reason, load_degraded(document));
    figures->samples_per_s = load_number(row, "samples_per_s");
    figures->wall_s = load_number(row, "wall_s");
    figures->parts_s[SWEEP_WAIT] = load_number(row, "wait_s");
    figures->parts_s[SWEEP_COMPUTE] = load_number(row, "compute_s");
    copy(figures->cache, sizeof figures->cache, source_of(row));
    read_set(document, figures);
    figures->ranks = figures->nodes = 1;
    return 0;
}

int sweep_read_survey(const json_t *document, struct sweep_figures *figures)
{
    const json_t *row = json_array_get(document, 0);
    const char *refused = load_text(row, "refused");

    if (!json_is_object(row))
        return fail(EINVAL, "it has no orders");
    if (json_array_size(document) > 1)
        refused = "it has several rows: give the values of a list one by one";
    refused = refused ? refused : load_text(row, "not_read_reason");
    refused = refused ? refused : load_text(row, "unverified_reason");
    figures->is_valid = !refused;
    copy(figures->reason, sizeof figures->reason, refused);
    figures->samples_per_s = load_number(row, "samples_per_s");
    figures->randomness = fmin(1, load_number(row, "labels_per_batch") /
                                      load_number(row, "labels_per_batch_at_random"));
    figures->ranks = count_of(row, "ranks");
    figures->nodes = 1;
    read_set(row, figures);
    return 0;
}
