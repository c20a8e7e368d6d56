/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/process.h"

#include "telemetry/plugins.h"

#include <stdio.h>

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

static int process_open(void *state, const void *settings, const struct probe_site *site,
                        struct probe_traits *traits)
{
    char pid[16] = "self";

    (void)settings;
    if (site->pid)
        snprintf(pid, sizeof pid, "%d", site->pid);
    int code = procfile_open(state, "%s/%s/io", site->roots->proc, pid);
    return code ? code : metric_add_rows(&traits->metrics, "", rows);
}

static void process_close(void *state)
{
    procfile_close(state);
}

static void process_sample(void *state, uint64_t *values)
{
    struct process_counters counters;
    struct text text;

    if (procfile_read(state, &text) == 0 && process_parse_io(text, &counters))
        metric_put_rows(rows, &counters, values);
}

const struct probe_ops probe_process = {
    .plugin = {.name = "process",
               .summary = "what the process itself read and wrote",
               .state_size = sizeof(struct procfile)},
    .open = process_open,
    .close = process_close,
    .sample = process_sample,
};
