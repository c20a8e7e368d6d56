/* SPDX-License-Identifier: Apache-2.0
 * lustre: byte counters of a Lustre client (llite.*.stats and osc.*.stats; "Lustre Operations
 * Manual", chapter Lustre Parameters). Pure functions; any thread. */
#ifndef IOBENCH_TELEMETRY_LUSTRE_H
#define IOBENCH_TELEMETRY_LUSTRE_H

#include "telemetry/text.h"

/* llite counts what applications requested, osc what servers sent. */
struct lustre_counters {
    uint64_t read_bytes, write_bytes, reads, writes;
};

/* Add the sums of one stats file. An unused counter has no line and counts 0. Returns false if
 * malformed. */
bool lustre_add_stats(struct text text, struct lustre_counters *counters);

#endif
