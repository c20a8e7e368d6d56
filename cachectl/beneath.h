/* SPDX-License-Identifier: Apache-2.0
 *
 * beneath: caches beneath the file system of a set of files. A loop device reads its file through
 * the page cache of the file system below: a second cache. A disk in memory can never be cold. Any
 * thread.
 */
#ifndef IOBENCH_CACHECTL_BENEATH_H
#define IOBENCH_CACHECTL_BENEATH_H

#include "cachectl/residency.h"
#include "telemetry/devices.h"

struct beneath {
    enum residency_state state;
    uint64_t resident_bytes; /* of those of the set, at most; all if it is in memory */
    char reason[400];        /* "" if cold */
};

/* devices: beneath the files, whose pages are cold. set_bytes: of the files; of a loop device's
 * file up to 1% of that may be resident, which looking at the set has read. */
void beneath_look(const struct device_list *devices, uint64_t set_bytes, struct beneath *beneath);

/* The same for files by name, of one set. */
void beneath_look_at(const char *const *paths, size_t count, uint64_t set_bytes,
                     struct beneath *beneath);

#endif
