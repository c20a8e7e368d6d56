/* SPDX-License-Identifier: Apache-2.0
 * lustre: byte counters of a Lustre client (llite.*.stats and osc.*.stats; "Lustre Operations
 * Manual", chapter Lustre Parameters). Pure functions; any thread. */
#ifndef IOBENCH_TELEMETRY_LUSTRE_H
#define IOBENCH_TELEMETRY_LUSTRE_H

#include "telemetry/text.h"

/* Those of llite are what applications asked for, those of osc what came from the servers. */
struct lustre_counters {
    uint64_t read_bytes, write_bytes, reads, writes;
};

/* Adds the sums of one stats file. A counter that was never used has no line: 0. False when the
 * text is none. */
bool lustre_add_stats(struct text text, struct lustre_counters *counters);

#endif
