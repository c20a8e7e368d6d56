/* SPDX-License-Identifier: Apache-2.0
 * pressure: time that tasks stalled on a resource (Documentation/accounting/psi.rst).
 * Pure functions; any thread. */
#ifndef IOBENCH_TELEMETRY_PRESSURE_H
#define IOBENCH_TELEMETRY_PRESSURE_H

#include "telemetry/text.h"

struct pressure_counters {
    uint64_t some_us; /* at least one task waited */
    uint64_t full_us; /* all tasks waited; 0 for the CPU on older kernels */
};

bool pressure_parse(struct text text, struct pressure_counters *counters);

#endif
