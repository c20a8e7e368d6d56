/* SPDX-License-Identifier: Apache-2.0
 * Devices of an imitated machine below the test's folder, and a look at one of its probes. */
#ifndef IOBENCH_TESTS_UNIT_MACHINE_H
#define IOBENCH_TESTS_UNIT_MACHINE_H

#include "tests/unit/folder.h"

#include "telemetry/probe.h"

/* Create /sys/devices/PATH and its entry in /sys/dev/block. */
static inline void make_device(const char *path, const char *number)
{
    char name[512], link[512];

    snprintf(name, sizeof name, "sys/devices/%s/dev", path);
    folder_put(name, number);
    snprintf(name, sizeof name, "%s/sys/dev/block/%s", test_folder, number);
    snprintf(link, sizeof link, "../../devices/%s", path);
    assert_int_equal(symlink(link, name), 0);
}

/* An open probe, and its values after one sample. */
struct look {
    struct probe probe;
    uint64_t values[256];
};

static inline int look_open(struct look *look, const char *name, const struct probe_site *site)
{
    struct plugin_choice choice = {0};

    assert_int_equal(plugin_choose("probe", probe_registry, name, &choice), 0);
    int code = probe_open(&look->probe, &choice, site);
    plugin_release(&choice);
    if (code == 0) {
        assert_true(look->probe.metrics.count <= 256);
        probe_sample(&look->probe, look->values);
    }
    return code;
}

static inline uint64_t value_of(const struct look *look, const char *part, const char *quantity)
{
    const struct metric_list *list = &look->probe.metrics;
    const size_t length = strlen(part), most = METRIC_PART_BYTES - 1;
    const char *tail = length > most ? part + length - most : part; /* what fits of a long path */

    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->metrics[i].part, tail) == 0 &&
            strcmp(list->metrics[i].quantity, quantity) == 0)
            return look->values[i] == PROBE_MISSING ? PROBE_MISSING
                                                    : look->values[i] * list->metrics[i].scale;
    fail_msg("there is no %s of %s", quantity, part);
    return 0;
}

#endif
