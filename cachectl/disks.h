/* SPDX-License-Identifier: Apache-2.0
 *
 * disks: bytes that any process has read since boot from the disks below a set of files. Off the
 * clock; one thread at a time.
 */
#ifndef IOBENCH_CACHECTL_DISKS_H
#define IOBENCH_CACHECTL_DISKS_H

#include "telemetry/devices.h"

/* Start zeroed. Each disk counts once, for the first files on it, so results of several calls can
 * be added. */
struct disks {
    struct device_list list;
};

/* Return false if unknown: no local disk holds the files, or it keeps no counters. */
bool disks_read_bytes(struct disks *disks, const char *const *paths, size_t count, uint64_t *bytes);

#endif
