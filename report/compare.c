/* SPDX-License-Identifier: Apache-2.0 */
#include "report/compare.h"

#include "base/memory.h"
#include "report/load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const struct compare_source {
    struct compare_figure figure;
    const char *path; /* in a run */
    int epoch;        /* of that epoch; -1: of the run, -2: mean of the later epochs */
} sources[COMPARE_FIGURES] = {
    {{.name = "Throughput", .unit = "samples/s", .key = "samples_per_s", .more_is_better = true},
     "samples_per_s",
     -1},
    {{.name = "Records", .unit = "B/s", .key = "record_bytes_per_s", .more_is_better = true},
     "record_bytes_per_s",
     -1},
    {{.name = "First epoch",
      .unit = "samples/s",
      .key = "first_epoch_samples_per_s",
      .more_is_better = true},
     "samples_per_s",
     0},
    {{.name = "Later epochs",
      .unit = "samples/s",
      .key = "later_epochs_samples_per_s",
      .more_is_better = true},
     "samples_per_s",
     -2},
    {{.name = "AU", .unit = "%", .key = "au_percent", .more_is_better = true}, "au_percent", -1},
    {{.name = "Read p99", .unit = "s", .key = "read_latency_p99_s", .more_is_better = false},
     "read_latency.p99_s",
     -1},
};

static double run_value(const json_t *run, const struct compare_source *source)
{
    const json_t *epochs = json_object_get(run, "epochs");
    size_t count = json_array_size(epochs);
    double sum = 0;

    if (source->epoch == -1)
        return load_number(run, source->path);
    if (source->epoch >= 0)
        return load_number(json_array_get(epochs, (size_t)source->epoch), source->path);
    for (size_t i = 1; i < count; i++)
        sum += load_number(json_array_get(epochs, i), source->path);
    return count > 1 ? sum / (double)(count - 1) : NAN;
}

static size_t collect(const json_t *job, const struct compare_source *source, double *values)
{
    const json_t *runs = json_object_get(job, "runs");
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(runs) && count < COMPARE_RUNS_MAX; i++) {
        double value = run_value(json_array_get(runs, i), source);
        if (isfinite(value))
            values[count++] = value;
    }
    return count;
}

double compare_least_p(size_t a_count, size_t b_count)
{
    double orders = 1; /* C(a + b, a) */

    for (size_t i = 1; i <= a_count; i++)
        orders = orders * (double)(b_count + i) / (double)i;
    return fmin(1, 2 / orders);
}

bool compare_significant(const struct compare_figure *figure, double alpha)
{
    return isfinite(figure->p) && figure->p < alpha;
}

int compare_jobs(const json_t *a, const json_t *b, struct comparison *comparison)
{
    double *values = memory_array(2 * COMPARE_RUNS_MAX, sizeof *values);

    if (!values)
        return -ENOMEM;
    comparison->a_valid = load_true(a, "valid");
    comparison->b_valid = load_true(b, "valid");
    for (int i = 0; i < COMPARE_FIGURES; i++) {
        struct compare_figure *figure = &comparison->figures[i];
        *figure = sources[i].figure;
        size_t a_count = collect(a, &sources[i], values);
        size_t b_count = collect(b, &sources[i], values + COMPARE_RUNS_MAX);
        figure->a = stats_summarise(values, a_count);
        figure->b = stats_summarise(values + COMPARE_RUNS_MAX, b_count);
        figure->change_percent = figure->p = figure->least_p = NAN;
        if (a_count == 0 || b_count == 0)
            continue;
        if (figure->a.median > 0)
            figure->change_percent = 100 * (figure->b.median / figure->a.median - 1);
        figure->p = stats_mann_whitney_p(values, a_count, values + COMPARE_RUNS_MAX, b_count);
        figure->least_p = compare_least_p(a_count, b_count);
    }
    free(values);
    return 0;
}
