/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "base/json.h"
#include "pipeline/result/result.h"
#include "report/words.h"

#include <stdio.h>
#include <stdlib.h>

static const struct point {
    const char *key, *name;
    double fraction;
} points[] = {{"p50_s", "p50", 0.5},
              {"p90_s", "p90", 0.9},
              {"p99_s", "p99", 0.99},
              {"p99_9_s", "p99.9", 0.999},
              {"max_s", "max", 1}};
enum { POINTS = sizeof points / sizeof points[0] };

static json_t *histogram_json(const struct histogram *latency, bool quantiles)
{
    static const double shares[] = {0.01,  0.05,  0.1,   0.2,    0.3,    0.4,    0.5,
                                    0.6,   0.7,   0.8,   0.9,    0.95,   0.98,   0.99,
                                    0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999};
    const bool known = latency->count > 0;
    json_t *object = json_object();

    json_put_count(object, "reads", latency->count);
    for (size_t i = 0; i < POINTS; i++)
        if (known)
            json_put_number(object, points[i].key,
                            (double)histogram_quantile(latency, points[i].fraction) / 1e9);
        else
            report_null(object, points[i].key, "nothing read");
    if (known)
        json_put_number(object, "mean_s", (double)latency->sum * 1e-9 / (double)latency->count);
    else
        report_null(object, "mean_s", "nothing read");
    if (!quantiles)
        return object;
    /* Pairs of a share of the reads and the latency that they did not exceed, down to single reads.
     */
    json_t *pairs = json_array();
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        if ((1 - shares[i]) * (double)latency->count < 1)
            break;
        json_t *pair = json_array();
        char text[32]; /* rows have six digits: report/print.c */
        json_array_append_new(pair, json_number(shares[i]));
        snprintf(text, sizeof text, "%.6g", (double)histogram_quantile(latency, shares[i]) / 1e9);
        json_array_append_new(pair, json_number(strtod(text, NULL)));
        json_array_append_new(pairs, pair);
    }
    json_object_set_new(object, "quantiles", pairs);
    return object;
}

json_t *latency_json(const struct histogram *all, const struct histogram *kinds, bool quantiles)
{
    json_t *object = histogram_json(all, quantiles);

    json_object_set_new(object, "first_epoch",
                        histogram_json(&kinds[RESULT_EPOCH_FIRST], quantiles));
    json_object_set_new(object, "later_epochs",
                        histogram_json(&kinds[RESULT_EPOCH_LATER], quantiles));
    if (kinds[RESULT_EPOCH_EVALUATION].count)
        json_object_set_new(object, "evaluation",
                            histogram_json(&kinds[RESULT_EPOCH_EVALUATION], quantiles));
    return object;
}

char *latency_text(const struct histogram *all, char *text, size_t bytes)
{
    char duration[WORDS_BYTES];
    size_t used = 0;

    for (size_t i = 0; i < POINTS; i++)
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%s %s", i ? ", " : "", points[i].name,
                             words_duration(histogram_quantile(all, points[i].fraction), duration));
    return text;
}

char *latency_text_by_epoch(const struct histogram *kinds, char *text, size_t bytes)
{
    static const char *const names[RESULT_EPOCH_KINDS] = {"first epoch", "later epochs",
                                                          "evaluation"};
    const bool several = kinds[RESULT_EPOCH_LATER].count || kinds[RESULT_EPOCH_EVALUATION].count;
    char p50[WORDS_BYTES], p99[WORDS_BYTES];
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; several && i < RESULT_EPOCH_KINDS; i++)
        if (kinds[i].count)
            used += (size_t)snprintf(text + used, bytes - used, "; %s p50 %s, p99 %s", names[i],
                                     words_duration(histogram_quantile(&kinds[i], 0.5), p50),
                                     words_duration(histogram_quantile(&kinds[i], 0.99), p99));
    return text;
}
