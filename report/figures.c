/* SPDX-License-Identifier: Apache-2.0
 * Figures as JSON, by their rows: pipeline/result/result.h. */
#include "report/report.h"

#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { KEY_BYTES = 96 };

void report_null(json_t *object, const char *key, const char *reason)
{
    const size_t length = strlen(key), end = strlen("_reason");
    char name[KEY_BYTES + 8];

    json_object_set_new(object, key, json_null());
    if (length > end && strcmp(key + length - end, "_reason") == 0)
        return;
    snprintf(name, sizeof name, "%s_reason", key);
    json_put_text(object, name, reason[0] ? reason : "not measured");
}

/* Add KEY, KEY_low95, KEY_high95, KEY_min and KEY_max. */
static void put_stats(json_t *object, const char *key, const struct stats_summary *stats)
{
    const struct {
        const char *suffix;
        double value;
    } parts[] = {{"", stats->median},
                 {"_low95", stats->low},
                 {"_high95", stats->high},
                 {"_min", stats->minimum},
                 {"_max", stats->maximum}};
    char name[KEY_BYTES];

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(name, sizeof name, "%s%s", key, parts[i].suffix);
        if (isfinite(parts[i].value))
            json_put_number(object, name, parts[i].value);
        else
            report_null(object, name, "not a finite number");
    }
}

static void put_figure(json_t *object, const struct figure *row, const void *of)
{
    const void *at = (const char *)of + row->offset;
    const uint64_t *count = at;
    const char *reason = row->reason_at ? (const char *)of + row->reason_at : row->unknown;
    const char *key = row->key, *within = strchr(key, '.');
    double real = NAN;
    bool known = true;
    json_t *value = NULL;
    char text[40];

    assert(strlen(key) < KEY_BYTES);
    if (within) {
        char name[KEY_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)(within - key), key);
        if (!json_object_get(object, name))
            json_object_set_new(object, name, json_object());
        object = json_object_get(object, name);
        key = within + 1;
    }
    switch (row->type) {
    case FIGURE_COUNT:
        known = *count > 0;
        value = json_integer((json_int_t)*count);
        break;
    case FIGURE_ORDINAL:
        value = json_integer((json_int_t)*count + 1);
        break;
    case FIGURE_NUMBER:
        known = *(const uint32_t *)at > 0;
        value = json_integer(*(const uint32_t *)at);
        break;
    case FIGURE_TIME:
        known = *count > 0;
        value = json_real((double)*count / 1e9);
        break;
    case FIGURE_REAL:
        real = *(const double *)at;
        known = real > 0;
        value = json_number(real);
        break;
    case FIGURE_DERIVED:
        real = row->value(at);
        known = isfinite(real);
        value = json_number(real);
        break;
    case FIGURE_FLAG:
        value = json_boolean(*(const bool *)at);
        break;
    case FIGURE_TEXT:
        known = *(const char *)at;
        value = json_text(at);
        break;
    case FIGURE_STATS:
        known = ((const struct stats_summary *)at)->count > 0;
        reason = reason ? reason : "no complete run";
        break;
    case FIGURE_LIMIT:
        value = json_text(summary_limit_name(*(const enum result_limit *)at));
        break;
    case FIGURE_DIGEST:
        snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, count[0], count[1]);
        value = json_text(text);
        break;
    }
    if (row->known_at)
        known = *((const bool *)of + row->known_at) && (known || row->type != FIGURE_STATS);
    const bool is_real = row->type == FIGURE_REAL || row->type == FIGURE_DERIVED;
    if ((reason && !known) || (is_real && !isfinite(real))) {
        json_decref(value);
        report_null(object, key, reason && !known ? reason : "not a finite number");
    } else if (row->type == FIGURE_STATS) {
        put_stats(object, key, at);
    } else {
        json_object_set_new(object, key, value);
    }
}

void report_figures(json_t *object, const struct figure *rows, size_t count, const void *of)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].key)
            put_figure(object, &rows[i], of);
}
