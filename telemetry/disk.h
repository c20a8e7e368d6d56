/* SPDX-License-Identifier: Apache-2.0
 *
 * disk: the counters of a block device (Documentation/admin-guide/iostats.rst). Pure functions;
 * any thread.
 */
#ifndef IOBENCH_TELEMETRY_DISK_H
#define IOBENCH_TELEMETRY_DISK_H

#include "telemetry/text.h"

enum { DISK_SECTOR_BYTES = 512 }; /* whatever the device's sector size */

struct disk_counters {
    uint64_t reads, reads_merged, read_sectors, read_ms;
    uint64_t writes, writes_merged, write_sectors, write_ms;
    uint64_t in_flight;
    uint64_t busy_ms;  /* too low on multi-queue devices: not a measure of load */
    uint64_t queue_ms; /* requests in flight, integrated over time */
};

/* Parse /sys/block/NAME/stat; more fields may follow. */
bool disk_parse_stat(struct text text, struct disk_counters *counters);

#endif
