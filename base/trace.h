/* SPDX-License-Identifier: Apache-2.0
 *
 * trace: spans of time, for a picture of one run in Perfetto (docs/trace.md).
 *
 * Each thread has a ring of fixed size that it alone writes: no lock, no atomic. A full ring
 * overwrites its oldest spans, which are counted as lost. Create and print while no thread writes.
 * With a NULL ring nothing is recorded and no clock is read.
 */
#ifndef IOBENCH_BASE_TRACE_H
#define IOBENCH_BASE_TRACE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>

enum { TRACE_FIGURES = 5, TRACE_SPANS = 1 << 15 /* of a ring */ };

struct trace_kind {
    const char *name;
    bool overlaps;                      /* with others of its kind: not one after the other */
    const char *figures[TRACE_FIGURES]; /* names; NULL: no more */
};

struct trace_span {
    const struct trace_kind *kind;
    uint64_t from_ns, to_ns;
    uint64_t figures[TRACE_FIGURES]; /* printed as signed ones */
};

struct trace_ring {
    char thread[16];
    uint64_t count; /* recorded, lost ones included */
    struct trace_span spans[TRACE_SPANS];
};

struct trace {
    uint64_t start_ns;
    uint32_t ring_count;
    struct trace_ring *rings;
};

struct trace *trace_create(uint32_t rings); /* NULL with a reason */
void trace_destroy(struct trace *trace);
/* Name a thread and return its ring; NULL of NULL. */
struct trace_ring *trace_ring(struct trace *trace, uint32_t index, const char *thread);
uint64_t trace_lost(const struct trace *trace);
/* Print JSON of the Trace Event Format. */
void trace_print(const struct trace *trace, FILE *stream);

static inline uint64_t trace_now_ns(const struct trace_ring *ring)
{
    return ring ? clock_now_ns() : 0;
}

static inline void trace_add(struct trace_ring *ring, struct trace_span span)
{
    if (ring)
        ring->spans[ring->count++ % TRACE_SPANS] = span;
}

#endif
