/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

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
    int code = 0;

    (void)state;
    (void)settings;
    for (size_t i = 0; i < (site->pid_count ? site->pid_count : 1) && code == 0; i++) {
        if (site->pid_count)
            snprintf(pid, sizeof pid, "%d", site->pids[i]);
        code = probe_add_file(traits, "%s/%s/io", site->roots->proc, pid);
    }
    return code ? code : metric_add_rows(&traits->metrics, "", rows);
}

/* If one part is missing, so is the sum. */
static void process_sample(void *state, const struct probe_traits *traits, uint64_t *values)
{
    struct process_counters sum = {0}, counters;
    struct text text;

    (void)state;
    for (uint32_t i = 0; i < traits->file_count; i++) {
        if (procfile_read(&traits->files[i], &text) || !process_parse_io(text, &counters))
            return;
        sum.read_bytes += counters.read_bytes;
        sum.read_calls_bytes += counters.read_calls_bytes;
        sum.read_calls += counters.read_calls;
        sum.write_bytes += counters.write_bytes;
    }
    metric_put_rows(rows, &sum, values);
}

const struct probe_ops probe_process = {
    .plugin = {.name = "process", .summary = "bytes read and written by the process"},
    .open = process_open,
    .sample = process_sample,
};
