/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/beneath.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

void beneath_look(const struct device_list *devices, uint64_t set_bytes, struct beneath *beneath)
{
    struct residency_probe *probe = devices->backing_count ? residency_probe_create() : NULL;
    char size[32];

    *beneath = (struct beneath){.state = RESIDENCY_COLD};
    for (uint32_t i = 0; i < devices->backing_count && beneath->state == RESIDENCY_COLD; i++) {
        struct residency found = {.state = RESIDENCY_UNVERIFIED};
        const char *path = devices->backing[i];
        if (probe)
            residency_file(probe, path, &found);
        if (found.state == RESIDENCY_UNVERIFIED) {
            beneath->state = RESIDENCY_UNVERIFIED;
            snprintf(beneath->reason, sizeof beneath->reason, "loop device on %.200s: %.150s", path,
                     found.reason[0] ? found.reason : "no memory to look at it");
        } else if (found.resident_bytes > set_bytes / 100) {
            beneath->state = RESIDENCY_WARM;
            beneath->resident_bytes =
                found.resident_bytes < set_bytes ? found.resident_bytes : set_bytes;
            snprintf(beneath->reason, sizeof beneath->reason,
                     "loop device on %.200s, of which %s are in memory%s%.100s", path,
                     bytes_text(found.resident_bytes, size, sizeof size),
                     found.reason[0] ? ": " : "", found.reason);
        }
    }
    residency_probe_destroy(probe);
    if (beneath->state == RESIDENCY_COLD && devices->memory[0]) {
        beneath->state = RESIDENCY_WARM;
        beneath->resident_bytes = set_bytes;
        snprintf(beneath->reason, sizeof beneath->reason, "on %s, which can never be cold",
                 devices->memory);
    }
}

void beneath_look_at(const char *const *paths, size_t count, uint64_t set_bytes,
                     struct beneath *beneath)
{
    struct device_list *devices = memory_zeroed(sizeof *devices);

    if (devices)
        devices_of_paths(&telemetry_roots_usual, paths, count, devices);
    if (devices)
        beneath_look(devices, set_bytes, beneath);
    else
        *beneath = (struct beneath){.state = RESIDENCY_UNVERIFIED, .reason = "out of memory"};
    free(devices);
}
