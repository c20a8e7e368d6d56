/* SPDX-License-Identifier: Apache-2.0
 *
 * meter: the pipeline's own counters, and the probe that samples them together with the machine's.
 * Each stage adds to its own counters. Any thread. A NULL meter counts nothing.
 */
#ifndef IOBENCH_PIPELINE_RESULT_METER_H
#define IOBENCH_PIPELINE_RESULT_METER_H

#include "base/atomic.h"
#include "telemetry/series.h"
#include "telemetry/probe.h"

enum meter_count {
    METER_READ_BYTES, /* bytes delivered by the reader; completed reads */
    METER_READ_COUNT,
    METER_PASSTHROUGH_BYTES, /* of the read ones, by commands to the disk itself */
    METER_CLIENT_BYTES,      /* ... by a client of the server in the reader (libnfs) */
    METER_RECORD_BYTES,      /* parsed and decoded into rows, framing included */
    METER_RECORD_COUNT,
    METER_TRAINED_COUNT,     /* samples of finished steps */
    METER_LOADER_STORAGE_NS, /* the loader waited for storage */
    METER_LOADER_MEMORY_NS,  /* ... for memory: decode or trainer is behind */
    METER_DECODE_RECORD_NS,  /* sum over decode threads: waiting for records */
    METER_DECODE_BATCH_NS,   /* ... for an open batch: the trainer is behind */
    METER_DECODE_BUSY_NS,
    METER_DECODE_HINTS_NS,  /* ... making hints */
    METER_TRAINER_BATCH_NS, /* the trainer waited for a batch */
    METER_TRAINER_BUSY_NS,
    METER_GRADIENT_BYTES, /* that this rank sends in a ring all-reduce */
    METER_COUNTS
};

/* A thread that waits says so at least this often, or a timeline would show neither wait nor work.
 */
#define METER_WAIT_NS UINT64_C(100000000)

struct meter {
    struct counter counts[METER_COUNTS];
};

/* Figures of a timeline from the counters; key NULL: none. */
extern const struct monitor_figure meter_figures[METER_COUNTS];

static inline void meter_add(struct meter *meter, enum meter_count count, uint64_t amount)
{
    if (meter)
        counter_add(&meter->counts[count], amount);
}

/* Settings of the probe, which adds up the meters of several ranks. */
struct meter_list {
    struct meter *const *meters;
    uint32_t count;
};
extern const struct probe_ops meter_probe;

#endif
