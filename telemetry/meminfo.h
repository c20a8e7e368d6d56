/* SPDX-License-Identifier: Apache-2.0
 * meminfo: memory and page cache (/proc/meminfo, proc(5)). Pure functions; any thread. */
#ifndef IOBENCH_TELEMETRY_MEMINFO_H
#define IOBENCH_TELEMETRY_MEMINFO_H

#include "telemetry/text.h"

/* In KiB. */
struct meminfo_levels {
    uint64_t total, free, available, buffers, cached, dirty, writeback, shared;
};

/* Missing levels are PROBE_MISSING. Returns false without a total. */
bool meminfo_parse(struct text text, struct meminfo_levels *levels);

#endif
