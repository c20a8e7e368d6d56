/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/lustre.h"

#include "base/fail.h"
#include "base/folder.h"
#include "base/memory.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "read_bytes  COUNT samples [bytes] MINIMUM MAXIMUM SUM SUM-OF-SQUARES" */
static void add_line(struct text line, uint64_t *count, uint64_t *bytes)
{
    struct text word;
    uint64_t samples, minimum, maximum, sum;

    if (!text_u64(&line, &samples) || !text_word(&line, &word) || !text_is(word, "samples") ||
        !text_word(&line, &word) || !text_is(word, "[bytes]") || !text_u64(&line, &minimum) ||
        !text_u64(&line, &maximum) || !text_u64(&line, &sum))
        return;
    *count += samples;
    *bytes += sum;
}

bool lustre_add_stats(struct text text, struct lustre_counters *counters)
{
    struct text line, name;
    bool found = false;

    while (text_line(&text, &line)) {
        if (!text_word(&line, &name))
            continue;
        if (text_is(name, "snapshot_time"))
            found = true;
        else if (text_is(name, "read_bytes"))
            add_line(line, &counters->reads, &counters->read_bytes);
        else if (text_is(name, "write_bytes"))
            add_line(line, &counters->writes, &counters->write_bytes);
    }
    return found;
}

/* ---- the probe ---- */

enum { FILES_MAX = 4096 };

struct layer {
    struct procfile *files;
    size_t count;
};

struct lustre_probe {
    struct layer application, server;
};

static const struct metric_row application_rows[] = {
    {"application_read_bytes", offsetof(struct lustre_counters, read_bytes), METRIC_COUNTER, 1},
    {"application_write_bytes", offsetof(struct lustre_counters, write_bytes), METRIC_COUNTER, 1},
    {0},
};

static const struct metric_row server_rows[] = {
    {"server_read_bytes", offsetof(struct lustre_counters, read_bytes), METRIC_COUNTER, 1},
    {"server_write_bytes", offsetof(struct lustre_counters, write_bytes), METRIC_COUNTER, 1},
    {"server_read_count", offsetof(struct lustre_counters, reads), METRIC_COUNTER, 1},
    {0},
};

/* Older versions have them in /proc, newer ones in debugfs, which only root may read. */
static int open_layer(struct layer *layer, const struct telemetry_roots *roots, const char *name)
{
    char pattern[512];
    struct folder_names found;

    snprintf(pattern, sizeof pattern, "%s/fs/lustre/%s/*/stats", roots->proc, name);
    int code = folder_names_matching(&found, pattern);
    if (code == 0 && found.count == 0) {
        snprintf(pattern, sizeof pattern, "%s/kernel/debug/lustre/%s/*/stats", roots->sys, name);
        code = folder_names_matching(&found, pattern);
    }
    const size_t count = found.count < FILES_MAX ? found.count : FILES_MAX;
    if (count) {
        layer->files = memory_array(count, sizeof *layer->files);
        code = layer->files ? 0 : -ENOMEM;
    }
    for (; code == 0 && layer->count < count; layer->count++)
        code = procfile_open(&layer->files[layer->count], "%s", found.list[layer->count]);
    folder_names_release(&found);
    return code;
}

static int lustre_open(void *state, const void *settings, const struct probe_site *site,
                       struct probe_traits *traits)
{
    struct lustre_probe *lustre = state;
    int code = open_layer(&lustre->application, site->roots, "llite");

    (void)settings;
    if (code == 0)
        code = open_layer(&lustre->server, site->roots, "osc");
    if (code == 0 && lustre->application.count == 0 && lustre->server.count == 0)
        return fail(ENOENT, "no Lustre client counters on this node");
    if (code == 0 && lustre->application.count)
        code = metric_add_rows(&traits->metrics, "", application_rows);
    if (code == 0 && lustre->server.count)
        code = metric_add_rows(&traits->metrics, "", server_rows);
    return code;
}

static void close_layer(struct layer *layer)
{
    for (size_t i = 0; i < layer->count; i++)
        procfile_close(&layer->files[i]);
    free(layer->files);
}

static void lustre_close(void *state)
{
    struct lustre_probe *lustre = state;

    close_layer(&lustre->application);
    close_layer(&lustre->server);
}

/* A sum with a missing part is missing. */
static uint64_t *sample_layer(struct layer *layer, const struct metric_row *rows, uint64_t *values)
{
    struct lustre_counters counters = {0};
    struct text text;

    if (layer->count == 0)
        return values;
    for (size_t i = 0; i < layer->count; i++)
        if (procfile_read(&layer->files[i], &text) || !lustre_add_stats(text, &counters))
            return metric_skip_rows(rows, values);
    return metric_put_rows(rows, &counters, values);
}

static void lustre_sample(void *state, uint64_t *values)
{
    struct lustre_probe *lustre = state;

    values = sample_layer(&lustre->application, application_rows, values);
    sample_layer(&lustre->server, server_rows, values);
}

static int lustre_usable(void)
{
    struct lustre_probe lustre = {0};
    int code = open_layer(&lustre.application, &telemetry_roots_usual, "llite");

    if (code == 0 && lustre.application.count == 0)
        code = fail(ENOENT, "no Lustre client counters on this node");
    close_layer(&lustre.application);
    return code;
}

const struct probe_ops probe_lustre = {
    .plugin = {.name = "lustre",
               .summary = "Lustre client: bytes to applications and from servers",
               .state_size = sizeof(struct lustre_probe),
               .usable = lustre_usable},
    .open = lustre_open,
    .close = lustre_close,
    .sample = lustre_sample,
};
