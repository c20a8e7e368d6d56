/* SPDX-License-Identifier: Apache-2.0
 *
 * disks: what the disks beneath files have read since the machine started, to whomever. Off the
 * clock; one thread at a time.
 */
#ifndef IOBENCH_CACHECTL_DISKS_H
#define IOBENCH_CACHECTL_DISKS_H

#include "telemetry/devices.h"

/* Zero it to begin. Each disk is counted once, for the files that name it first, so that what the
 * calls return can be added up. */
struct disks {
    struct device_list list;
};

/* False where it is not known: no disk of this machine holds the files, or does not count. */
bool disks_read_bytes(struct disks *disks, const char *const *paths, size_t count, uint64_t *bytes);

#endif
