/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "base/fail.h"
#include "base/folder.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <stdio.h>

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

struct lustre_probe {
    uint32_t application_count; /* of the files, which come first; the others are the server's */
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
static int find_layer(const struct telemetry_roots *roots, const char *name,
                      struct folder_names *found)
{
    char pattern[512];

    snprintf(pattern, sizeof pattern, "%s/fs/lustre/%s/*/stats", roots->proc, name);
    int code = folder_names_matching(found, pattern);
    if (code == 0 && found->count == 0) {
        snprintf(pattern, sizeof pattern, "%s/kernel/debug/lustre/%s/*/stats", roots->sys, name);
        code = folder_names_matching(found, pattern);
    }
    return code;
}

static int lustre_open(struct probe *probe, const struct probe_site *site)
{
    static const char *const layers[] = {"llite", "osc"};
    static const struct metric_row *const layer_rows[] = {application_rows, server_rows};
    struct lustre_probe *lustre = probe->state;
    int code = 0;

    for (int layer = 0; layer < 2 && code == 0; layer++) {
        struct folder_names found;
        code = find_layer(site->roots, layers[layer], &found);
        for (size_t i = 0; code == 0 && i < found.count && i < FILES_MAX; i++)
            code = probe_add_file(probe, "%s", found.list[i]);
        if (code == 0 && found.count)
            code = metric_add_rows(&probe->metrics, "", layer_rows[layer]);
        folder_names_release(&found);
        if (layer == 0)
            lustre->application_count = probe->file_count;
    }
    return code == 0 && probe->file_count == 0
               ? fail(ENOENT, "no Lustre client counters on this node")
               : code;
}

/* A sum with a missing part is missing. */
static void lustre_sample(const struct probe *probe, uint64_t *values)
{
    const struct lustre_probe *lustre = probe->state;
    const uint32_t ends[] = {lustre->application_count, probe->file_count};
    static const struct metric_row *const layer_rows[] = {application_rows, server_rows};
    uint32_t i = 0;

    for (int layer = 0; layer < 2; layer++) {
        struct lustre_counters counters = {0};
        struct text text;
        bool known = true;
        if (i == ends[layer])
            continue;
        for (; i < ends[layer]; i++)
            known = known && procfile_read(&probe->files[i], &text) == 0 &&
                    lustre_add_stats(text, &counters);
        values = known ? metric_put_rows(layer_rows[layer], &counters, values)
                       : metric_skip_rows(layer_rows[layer], values);
    }
}

static int lustre_usable(void)
{
    struct folder_names found;
    int code = find_layer(&telemetry_roots_usual, "llite", &found);

    if (code == 0 && found.count == 0)
        code = fail(ENOENT, "no Lustre client counters on this node");
    folder_names_release(&found);
    return code;
}

const struct probe_ops probe_lustre = {
    .plugin = {.name = "lustre",
               .summary = "Lustre client: bytes to applications and from servers",
               .state_size = sizeof(struct lustre_probe),
               .usable = lustre_usable},
    .open = lustre_open,
    .sample = lustre_sample,
};
