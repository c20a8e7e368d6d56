/* SPDX-License-Identifier: Apache-2.0
 * process: I/O of one process (/proc/PID/io, proc(5)). Pure functions; any thread. */
#ifndef IOBENCH_TELEMETRY_PROCESS_H
#define IOBENCH_TELEMETRY_PROCESS_H

#include "telemetry/text.h"

struct process_counters {
    uint64_t read_calls_bytes; /* rchar: read(2) etc., without io_uring */
    uint64_t read_calls;       /* syscr */
    uint64_t read_bytes;       /* from block devices and NFS, by any call, with read-ahead */
    uint64_t write_bytes;      /* to the page cache, for write-back */
};

/* Returns false without read_bytes. */
bool process_parse_io(struct text text, struct process_counters *counters);

#endif
