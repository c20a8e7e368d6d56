/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "base/fail.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <unistd.h>

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
bool pressure_parse(struct text text, struct pressure_counters *counters)
{
    struct text line, kind, word;
    bool found = false;

    *counters = (struct pressure_counters){0};
    while (text_line(&text, &line)) {
        if (!text_word(&line, &kind))
            continue;
        uint64_t *total = text_is(kind, "some")   ? &counters->some_us
                          : text_is(kind, "full") ? &counters->full_us
                                                  : NULL;
        while (total && text_word(&line, &word))
            if (text_skip(&word, "total=") && text_u64(&word, total))
                found |= total == &counters->some_us;
    }
    return found;
}

/* ---- the probe ---- */

static const struct metric_row rows[] = {
    {"some_us", offsetof(struct pressure_counters, some_us), METRIC_COUNTER, 1},
    {"full_us", offsetof(struct pressure_counters, full_us), METRIC_COUNTER, 1},
    {0},
};

static int pressure_open(void *state, const void *settings, const struct probe_site *site,
                         struct probe_traits *traits)
{
    static const char *const resources[] = {"io", "memory", "cpu"};
    int code = 0;

    (void)state;
    (void)settings;
    for (size_t i = 0; i < sizeof resources / sizeof resources[0] && code == 0; i++) {
        code = probe_add_file(traits, "%s/pressure/%s", site->roots->proc, resources[i]);
        if (code == 0)
            code = metric_add_rows(&traits->metrics, resources[i], rows);
    }
    return code;
}

static void pressure_sample(void *state, const struct probe_traits *traits, uint64_t *values)
{
    struct pressure_counters counters;
    struct text text;

    (void)state;
    for (uint32_t i = 0; i < traits->file_count; i++)
        values = procfile_read(&traits->files[i], &text) == 0 && pressure_parse(text, &counters)
                     ? metric_put_rows(rows, &counters, values)
                     : metric_skip_rows(rows, values);
}

static int pressure_usable(void)
{
    return access("/proc/pressure/io", R_OK) == 0
               ? 0
               : fail(ENOENT,
                      "/proc/pressure/io: %s; the kernel needs CONFIG_PSI, or psi=1 at "
                      "boot",
                      fail_errno_text(errno));
}

const struct probe_ops probe_pressure = {
    .plugin = {.name = "pressure",
               .summary = "time that tasks stalled on I/O, memory or CPU",
               .usable = pressure_usable},
    .open = pressure_open,
    .sample = pressure_sample,
};
