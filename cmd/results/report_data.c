/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/results/report_data.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/stats.h"
#include "base/text_stream.h"
#include "report/compare.h"
#include "report/documents.h"
#include "report/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 256 << 20, RUNS_SHOWN = 200, EPOCHS_SHOWN = 500, COMPARED = 25 };

static const double alpha = 0.05;

/* ---- loading ---- */

static bool is_taken(const struct report_data *data, const char *name)
{
    for (size_t i = 0; i < data->count; i++)
        if (strcmp(data->names[i], name) == 0)
            return true;
    return false;
}

static int add_document(struct report_data *data, const char *path, json_t *document)
{
    const json_t *jobs = json_object_get(document, "jobs");
    int code = load_check(path, document);

    for (size_t i = 0; i < json_array_size(data->documents) && code == 0; i++)
        code =
            load_refuse_copy(path, document, "an earlier file", json_array_get(data->documents, i));
    if (code)
        return code;
    json_array_append(data->documents, document);
    for (size_t i = 0; i < json_array_size(jobs) && code == 0; i++) {
        /* Name a run by its label, else its file, with more of the path only if two names are
         * equal. */
        const json_t *job = json_array_get(jobs, i);
        const char *label = load_text(job, "label"), *file = file_name(path);
        char *name = data->names[data->count];
        if (data->count == REPORT_RESULTS)
            code = fail(EINVAL, "%s: more than %d results", path, REPORT_RESULTS);
        else {
            snprintf(name, REPORT_NAME_BYTES, "%.100s", label && *label ? label : file);
            if (is_taken(data, name) && label && *label)
                snprintf(name, REPORT_NAME_BYTES, "%.60s (%.60s)", label, file);
            for (unsigned number = 2; is_taken(data, name); number++)
                snprintf(name, REPORT_NAME_BYTES, "%.60s (%.60s) %u",
                         label && *label ? label : file, file, number);
            data->results[data->count] = (struct picture_result){name, job};
            data->count++;
        }
    }
    return code;
}

static int add_shuffles(struct report_data *data, const char *path, json_t *rows)
{
    if (!load_text(json_array_get(rows, 0), "shuffle"))
        return fail(EINVAL, "%s: neither a result nor the output of iobench shuffle --json", path);
    json_array_extend(data->shuffles, rows);
    return 0;
}

static int add_other(struct report_data *data, const char *path, json_t *document)
{
    json_t *other = json_object();
    int code = documents_check(path, document);

    if (code == 0 && json_array_size(data->others) == REPORT_RESULTS)
        code = fail(EINVAL, "%s: more than %d results", path, REPORT_RESULTS);
    json_put_text(other, "name", file_name(path));
    json_object_set(other, "document", document);
    if (code == 0)
        json_array_append(data->others, other);
    json_decref(other);
    return code;
}

int report_data_load(struct report_data *data, const char *path)
{
    char *text;
    size_t bytes;
    int code = file_load(path, FILE_BYTES_MAX, &text, &bytes);

    if (code)
        return code;
    if (!data->documents) {
        data->documents = json_array();
        data->shuffles = json_array();
        data->others = json_array();
    }
    json_t *document = load_any(path, text, bytes);
    free(text);
    if (!document)
        return -EINVAL;
    code = json_is_array(document)    ? add_shuffles(data, path, document)
           : documents_kind(document) ? add_other(data, path, document)
                                      : add_document(data, path, document);
    json_decref(document);
    return code;
}

void report_data_release(struct report_data *data)
{
    json_decref(data->documents);
    json_decref(data->shuffles);
    json_decref(data->others);
}

/* ---- the data island ---- */

static json_t *pick(const json_t *object, const char *const *keys)
{
    json_t *picked = json_object();

    for (; *keys; keys++)
        json_object_set(picked, *keys, json_object_get(object, *keys));
    return picked;
}

static json_t *run_of(const json_t *run, size_t *epochs_left)
{
    static const char *const run_keys[] = {"run", "cold", "first_epoch_device_percent", NULL};
    static const char *const epoch_keys[] = {"epoch",
                                             "samples_per_s",
                                             "record_bytes_per_s",
                                             "wall_s",
                                             "first_batch_s",
                                             "au_percent",
                                             "limit",
                                             NULL};
    const json_t *epochs = json_object_get(run, "epochs");
    json_t *object = pick(run, run_keys), *array = json_array();

    for (size_t i = 0; i < json_array_size(epochs) && *epochs_left; i++, --*epochs_left)
        json_array_append_new(array, pick(json_array_get(epochs, i), epoch_keys));
    json_object_set_new(object, "epochs", array);
    return object;
}

/* Return the figures that the page shows; pictures_latency() draws the quantiles. */
static json_t *summary_of(const json_t *job)
{
    static const char *const keys[] = {"samples_per_s",
                                       "samples_per_s_low95",
                                       "samples_per_s_high95",
                                       "record_bytes_per_s",
                                       "first_epoch_samples_per_s",
                                       "first_epoch_samples_per_s_low95",
                                       "first_epoch_samples_per_s_high95",
                                       "first_epoch_record_bytes_per_s",
                                       "later_epochs_samples_per_s",
                                       "later_epochs_samples_per_s_low95",
                                       "later_epochs_samples_per_s_high95",
                                       "later_epochs_record_bytes_per_s",
                                       "interval_coverage",
                                       "limit",
                                       "limit_sentence",
                                       "shares",
                                       NULL};
    const json_t *whole = json_object_get(job, "summary");
    json_t *summary = pick(whole, keys),
           *latency = json_deep_copy(json_object_get(whole, "read_latency"));

    json_object_del(latency, "quantiles");
    json_object_del(json_object_get(latency, "first_epoch"), "quantiles");
    json_object_del(json_object_get(latency, "later_epochs"), "quantiles");
    json_object_set_new(summary, "read_latency", latency);
    return summary;
}

/* Return what the page shows of a job: no series, and only the first of many runs. */
static json_t *job_of(const json_t *job, size_t *epochs_left)
{
    static const char *const keys[] = {
        "headline", "entries", "label",  "valid", "invalid_reason", "started", "command",
        "settings", "dataset", "engine", "place", "advice",         NULL};
    const json_t *runs = json_object_get(job, "runs");
    json_t *object = pick(job, keys), *array = json_array();

    json_object_set_new(object, "summary", summary_of(job));

    for (size_t i = 0; i < json_array_size(runs) && i < RUNS_SHOWN; i++)
        json_array_append_new(array, run_of(json_array_get(runs, i), epochs_left));
    json_object_set_new(object, "runs", array);
    return object;
}

static json_t *comparison_of(const struct report_data *data, size_t b,
                             const struct comparison *comparison)
{
    struct text_stream stream;
    char *basis = NULL;
    size_t bytes;
    json_t *object = json_object();

    if (text_stream_open(&stream) == 0) {
        compare_basis(stream.stream, comparison, alpha);
        text_stream_take(&stream, &basis, &bytes);
    }
    json_put_text(object, "a", data->results[0].name);
    json_put_text(object, "b", data->results[b].name);
    json_put_text(object, "basis", basis);
    json_object_set_new(object, "comparison",
                        compare_json(data->results[b].name, comparison, alpha));
    free(basis);
    return object;
}

/* Compare each run with the first. */
static json_t *comparisons_of(const struct report_data *data)
{
    struct comparison comparisons[COMPARED];
    const size_t count = data->count - 1 < COMPARED ? data->count - 1 : COMPARED;
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        const json_t *a = data->results[0].job, *b = data->results[i + 1].job;
        if (compare_groups(&(struct compare_group){&a, 1}, &(struct compare_group){&b, 1},
                           &comparisons[i])) {
            json_decref(array);
            return NULL;
        }
    }
    if (count)
        compare_correct(comparisons, count);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, comparison_of(data, i + 1, &comparisons[i]));
    return array;
}

json_t *report_data_island(const struct report_data *data)
{
    json_t *island = json_object();
    json_t *comparisons = data->count ? comparisons_of(data) : json_array();

    json_t *array = json_array();
    size_t epochs_left = EPOCHS_SHOWN;
    for (size_t i = 0; i < data->count; i++) {
        json_t *object = json_object();
        json_put_text(object, "name", data->results[i].name);
        json_object_set_new(object, "job", job_of(data->results[i].job, &epochs_left));
        json_array_append_new(array, object);
    }
    json_object_set_new(island, "results", array);
    json_object_set_new(island, "scaling", pictures_scaling_rows(data->results, data->count));
    json_object_set_new(island, "comparisons", comparisons);
    json_t *others_of = json_array();
    size_t index;
    json_t *other;
    json_array_foreach(data->others, index, other)
    {
        const json_t *document = json_object_get(other, "document");
        json_t *object = json_object();
        json_object_set(object, "name", json_object_get(other, "name"));
        json_object_set_new(object, "document", documents_pick(documents_kind(document), document));
        json_array_append_new(others_of, object);
    }
    json_object_set_new(island, "others", others_of);
    if (comparisons && json_check() == 0)
        return island;
    json_decref(island);
    return NULL;
}
