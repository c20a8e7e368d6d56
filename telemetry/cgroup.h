/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup: bytes read and written by a process's control group
 * (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/blkio-controller.rst). Pure functions;
 * any thread.
 */
#ifndef IOBENCH_TELEMETRY_CGROUP_H
#define IOBENCH_TELEMETRY_CGROUP_H

#include "telemetry/text.h"

struct cgroup_counters {
    uint64_t read_bytes, write_bytes, reads, writes;
};

/* Add the io.stat (version 2) counters of one device. Returns false if the device is not listed. */
bool cgroup_add_io_stat(struct text text, unsigned device_major, unsigned device_minor,
                        struct cgroup_counters *counters);

/* As above, for blkio.throttle.io_service_bytes (version 1): bytes only. */
bool cgroup_add_blkio(struct text text, unsigned device_major, unsigned device_minor,
                      struct cgroup_counters *counters);

#endif
