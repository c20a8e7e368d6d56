/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "telemetry/plugins.h"

#include <string.h>

bool meminfo_parse(struct text text, struct meminfo_levels *levels)
{
    const struct {
        const char *name;
        uint64_t *level;
    } names[] = {
        {"MemTotal:", &levels->total},         {"MemFree:", &levels->free},
        {"MemAvailable:", &levels->available}, {"Buffers:", &levels->buffers},
        {"Cached:", &levels->cached},          {"Dirty:", &levels->dirty},
        {"Writeback:", &levels->writeback},    {"Shmem:", &levels->shared},
    };
    struct text line, name;

    memset(levels, 0xff, sizeof *levels); /* PROBE_MISSING */
    while (text_line(&text, &line))
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            struct text rest = line;
            if (text_word(&rest, &name) && text_is(name, names[i].name))
                text_u64(&rest, names[i].level);
        }
    return levels->total != PROBE_MISSING;
}

/* ---- the probe ---- */

static const struct metric_row rows[] = {
    {"free_bytes", offsetof(struct meminfo_levels, free), METRIC_LEVEL, 1024},
    {"available_bytes", offsetof(struct meminfo_levels, available), METRIC_LEVEL, 1024},
    {"cached_bytes", offsetof(struct meminfo_levels, cached), METRIC_LEVEL, 1024},
    {"buffer_bytes", offsetof(struct meminfo_levels, buffers), METRIC_LEVEL, 1024},
    {"dirty_bytes", offsetof(struct meminfo_levels, dirty), METRIC_LEVEL, 1024},
    {"writeback_bytes", offsetof(struct meminfo_levels, writeback), METRIC_LEVEL, 1024},
    {"shared_bytes", offsetof(struct meminfo_levels, shared), METRIC_LEVEL, 1024},
    {0},
};

static int meminfo_open(void *state, const void *settings, const struct probe_site *site,
                        struct probe_traits *traits)
{
    int code = probe_add_file(traits, "%s/meminfo", site->roots->proc);

    (void)state;
    (void)settings;
    return code ? code : metric_add_rows(&traits->metrics, "", rows);
}

static void meminfo_sample(void *state, const struct probe_traits *traits, uint64_t *values)
{
    struct meminfo_levels levels;
    struct text text;

    (void)state;
    if (procfile_read(traits->files, &text) == 0 && meminfo_parse(text, &levels))
        metric_put_rows(rows, &levels, values);
}

const struct probe_ops probe_memory = {
    .plugin = {.name = "memory", .summary = "memory, page cache, dirty pages"},
    .open = meminfo_open,
    .sample = meminfo_sample,
};
