/* SPDX-License-Identifier: Apache-2.0
 * process: what one process did (/proc/PID/io, proc(5)). Pure functions; any thread. */
#ifndef IOBENCH_TELEMETRY_PROCESS_H
#define IOBENCH_TELEMETRY_PROCESS_H

#include "telemetry/text.h"

struct process_counters {
    uint64_t read_calls_bytes; /* rchar: by read(2) and the like; io_uring is not in it */
    uint64_t read_calls;       /* syscr */
    uint64_t read_bytes;       /* from block devices and NFS, by any call, read ahead included */
    uint64_t write_bytes;      /* to the page cache, to be written */
};

/* False unless read_bytes is there. */
bool process_parse_io(struct text text, struct process_counters *counters);

#endif
