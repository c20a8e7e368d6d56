/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/probe.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int probe_open(struct probe *probe, const struct plugin_choice *choice,
               const struct probe_site *site)
{
    *probe = (struct probe){.ops = (const struct probe_ops *)choice->plugin};
    probe->settings = choice->settings;
    probe->metrics.probe = choice->plugin->name;
    probe->state = memory_zeroed(choice->plugin->state_size + 1);
    if (!probe->state)
        return -ENOMEM;
    int code = probe->ops->open(probe, site);
    assert(code <= 0);
    if (code == 0 && probe->metrics.count == 0)
        code = fail(ENOENT, "nothing to count");
    return code;
}

void probe_close(struct probe *probe)
{
    if (probe->state && probe->ops->close)
        probe->ops->close(probe);
    free(probe->state);
    for (uint32_t i = 0; i < probe->file_count; i++)
        procfile_close(&probe->files[i]);
    free(probe->files);
    free(probe->metrics.metrics);
    *probe = (struct probe){0};
}

void probe_sample(struct probe *probe, uint64_t *values)
{
    for (uint32_t i = 0; i < probe->metrics.count; i++)
        values[i] = PROBE_MISSING;
    probe->ops->sample(probe, values);
}

int probe_add_file(struct probe *probe, const char *format, ...)
{
    char path[4096];
    va_list arguments;

    if (memory_room(&probe->files, probe->file_count, sizeof *probe->files, "counter files"))
        return -ENOMEM;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    struct procfile *file = &probe->files[probe->file_count];
    int code = procfile_open(file, "%s", path);
    if (code)
        procfile_close(file); /* some drivers have files that fail to read */
    else
        probe->file_count++;
    return code;
}

struct metric *metric_add(struct metric_list *list, const char *part, const char *quantity,
                          enum metric_kind kind, uint32_t scale)
{
    if (memory_room(&list->metrics, list->count, sizeof *list->metrics, "metrics"))
        return NULL;
    assert(strlen(quantity) < METRIC_QUANTITY_BYTES);
    struct metric *metric = &list->metrics[list->count++];
    *metric =
        (struct metric){.probe = list->probe, .kind = kind, .bits = 64, .scale = scale ? scale : 1};
    snprintf(metric->part, sizeof metric->part, "%s", part);
    snprintf(metric->quantity, sizeof metric->quantity, "%s", quantity);
    return metric;
}

int metric_add_rows(struct metric_list *list, const char *part, const struct metric_row *rows)
{
    for (; rows->quantity; rows++)
        if (!metric_add(list, part, rows->quantity, rows->kind, rows->scale))
            return -ENOMEM;
    return 0;
}

uint64_t *metric_put_rows(const struct metric_row *rows, const void *counters, uint64_t *values)
{
    for (; rows->quantity; rows++)
        memcpy(values++, (const char *)counters + rows->offset, sizeof *values);
    return values;
}

uint64_t *metric_skip_rows(const struct metric_row *rows, uint64_t *values)
{
    for (; rows->quantity; rows++)
        values++;
    return values;
}
