/* SPDX-License-Identifier: Apache-2.0
 * cpu: processor time by kind (/proc/stat, proc(5)). Pure functions; any thread. */
#ifndef IOBENCH_TELEMETRY_CPU_H
#define IOBENCH_TELEMETRY_CPU_H

#include "telemetry/text.h"

/* In ticks of sysconf(_SC_CLK_TCK), usually 10 ms. */
struct cpu_counters {
    uint64_t user, nice, system, idle, io_wait, interrupt, soft_interrupt, steal;
    uint64_t user_all, system_all; /* user and nice; system and both kinds of interrupts */
};

/* Parse the next line, "cpu" (all) or "cpuN". Returns false at any other line. */
bool cpu_parse_next(struct text *text, struct text *name, struct cpu_counters *counters);

#endif
