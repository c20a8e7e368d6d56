/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/process.h"

#include "base/memory.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool process_parse_io(struct text text, struct process_counters *counters)
{
    struct text line, name;
    bool found = false;

    *counters = (struct process_counters){0};
    while (text_line(&text, &line)) {
        uint64_t value;
        if (!text_word(&line, &name) || !text_u64(&line, &value))
            continue;
        if (text_is(name, "rchar:"))
            counters->read_calls_bytes = value;
        else if (text_is(name, "syscr:"))
            counters->read_calls = value;
        else if (text_is(name, "read_bytes:"))
            counters->read_bytes = value, found = true;
        else if (text_is(name, "write_bytes:"))
            counters->write_bytes = value;
    }
    return found;
}

/* ---- the probe ---- */

static const struct metric_row rows[] = {
    {"read_bytes", offsetof(struct process_counters, read_bytes), METRIC_COUNTER, 1},
    {"read_call_bytes", offsetof(struct process_counters, read_calls_bytes), METRIC_COUNTER, 1},
    {"read_call_count", offsetof(struct process_counters, read_calls), METRIC_COUNTER, 1},
    {"write_bytes", offsetof(struct process_counters, write_bytes), METRIC_COUNTER, 1},
    {0},
};

struct process_probe {
    struct procfile *files; /* one per process */
    size_t count;
};

static int process_open(void *state, const void *settings, const struct probe_site *site,
                        struct probe_traits *traits)
{
    struct process_probe *probe = state;
    const size_t count = site->pid_count ? site->pid_count : 1;
    char pid[16] = "self";

    (void)settings;
    probe->files = memory_array(count, sizeof *probe->files);
    if (!probe->files)
        return -ENOMEM;
    while (probe->count < count) {
        if (site->pid_count)
            snprintf(pid, sizeof pid, "%d", site->pids[probe->count]);
        int code = procfile_open(&probe->files[probe->count++], "%s/%s/io", site->roots->proc, pid);
        if (code)
            return code;
    }
    return metric_add_rows(&traits->metrics, "", rows);
}

static void process_close(void *state)
{
    struct process_probe *probe = state;

    for (size_t i = 0; i < probe->count; i++)
        procfile_close(&probe->files[i]);
    free(probe->files);
}

/* If one part is missing, so is the sum. */
static void process_sample(void *state, uint64_t *values)
{
    const struct process_probe *probe = state;
    struct process_counters sum = {0}, counters;
    struct text text;

    for (size_t i = 0; i < probe->count; i++) {
        if (procfile_read(&probe->files[i], &text) || !process_parse_io(text, &counters))
            return;
        sum.read_bytes += counters.read_bytes;
        sum.read_calls_bytes += counters.read_calls_bytes;
        sum.read_calls += counters.read_calls;
        sum.write_bytes += counters.write_bytes;
    }
    metric_put_rows(rows, &sum, values);
}

const struct probe_ops probe_process = {
    .plugin = {.name = "process",
               .summary = "bytes read and written by the process",
               .state_size = sizeof(struct process_probe)},
    .open = process_open,
    .close = process_close,
    .sample = process_sample,
};
