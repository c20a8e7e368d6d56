/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup: what the control group of a process read and wrote
 * (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/blkio-controller.rst). Pure functions;
 * any thread.
 */
#ifndef IOBENCH_TELEMETRY_CGROUP_H
#define IOBENCH_TELEMETRY_CGROUP_H

#include "telemetry/text.h"

struct cgroup_counters {
    uint64_t read_bytes, write_bytes, reads, writes;
};

/* Adds what io.stat (version 2) says of one device; false when it does not name it. */
bool cgroup_add_io_stat(struct text text, unsigned device_major, unsigned device_minor,
                        struct cgroup_counters *counters);

/* The same for blkio.throttle.io_service_bytes (version 1): bytes only. */
bool cgroup_add_blkio(struct text text, unsigned device_major, unsigned device_minor,
                      struct cgroup_counters *counters);

/* The path of a process' group in /proc/PID/cgroup: of version 2 with controller NULL, else of the
 * hierarchy of that controller. */
bool cgroup_find_path(struct text text, const char *controller, char *path, size_t path_bytes);

#endif
