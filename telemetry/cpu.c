/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "base/fail.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cpu_parse_next(struct text *text, struct text *name, struct cpu_counters *counters)
{
    uint64_t *const fields[] = {&counters->user,           &counters->nice,    &counters->system,
                                &counters->idle,           &counters->io_wait, &counters->interrupt,
                                &counters->soft_interrupt, &counters->steal};
    struct text line;

    if (!text_line(text, &line) || !text_word(&line, name) || !text_starts(*name, "cpu"))
        return false;
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!text_u64(&line, fields[i]))
            return false;
    counters->user_all = counters->user + counters->nice;
    counters->system_all = counters->system + counters->interrupt + counters->soft_interrupt;
    return true;
}

/* ---- the probe ---- */

enum { CPUS_MAX = 1024, NAME_BYTES = 16 };

struct cpu_probe {
    char names[CPUS_MAX][NAME_BYTES];
    uint32_t count;
};

/* Scale: the length of a tick. */
static const struct metric_row rows[] = {
    {"user_ms", offsetof(struct cpu_counters, user_all), METRIC_COUNTER, 0},
    {"system_ms", offsetof(struct cpu_counters, system_all), METRIC_COUNTER, 0},
    {"io_wait_ms", offsetof(struct cpu_counters, io_wait), METRIC_COUNTER, 0},
    {"idle_ms", offsetof(struct cpu_counters, idle), METRIC_COUNTER, 0},
    {0},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] - 1 };

static int cpu_open(void *state, const void *settings, const struct probe_site *site,
                    struct probe_traits *traits)
{
    const uint32_t tick_ms = (uint32_t)(1000 / sysconf(_SC_CLK_TCK));
    struct cpu_probe *cpu = state;
    struct cpu_counters counters;
    struct text text, name;
    int code = probe_add_file(traits, "%s/stat", site->roots->proc);

    (void)settings;
    if (code)
        return code;
    code = procfile_read(traits->files, &text);
    if (code)
        return fail(-code, "%s/stat: %s", site->roots->proc, fail_errno_text(code));
    while (cpu->count < CPUS_MAX && cpu_parse_next(&text, &name, &counters)) {
        char *copy = text_copy(name, cpu->names[cpu->count++], NAME_BYTES);
        /* The total is the part "all". */
        for (const struct metric_row *row = rows; row->quantity; row++)
            if (!metric_add(&traits->metrics, copy[3] ? copy + 3 : "all", row->quantity, row->kind,
                            tick_ms))
                return -ENOMEM;
    }
    return 0;
}

/* Offline CPUs vanish from the text; the others keep their order. */
static void cpu_sample(void *state, const struct probe_traits *traits, uint64_t *values)
{
    struct cpu_probe *cpu = state;
    struct cpu_counters counters;
    struct text text, name;
    uint32_t at = 0;

    if (procfile_read(traits->files, &text))
        return;
    while (at < cpu->count && cpu_parse_next(&text, &name, &counters)) {
        uint32_t found = at;
        while (found < cpu->count && !text_is(name, cpu->names[found]))
            found++;
        if (found == cpu->count)
            continue; /* came online after the start */
        metric_put_rows(rows, &counters, values + (size_t)found * ROW_COUNT);
        at = found + 1;
    }
}

const struct probe_ops probe_cpu = {
    .plugin = {.name = "cpu",
               .summary = "processor time: user, system, I/O wait, idle",
               .state_size = sizeof(struct cpu_probe)},
    .open = cpu_open,
    .sample = cpu_sample,
};
