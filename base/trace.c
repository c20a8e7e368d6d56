/* SPDX-License-Identifier: Apache-2.0 */
#include "base/trace.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct trace *trace_create(uint32_t rings)
{
    const size_t bytes = rings * sizeof(struct trace_ring);
    struct trace *trace = memory_zeroed(sizeof *trace);

    if (!trace)
        return NULL;
    *trace = (struct trace){.ring_count = rings, .rings = memory_pages(bytes)};
    if (!trace->rings) {
        free(trace);
        return NULL;
    }
    memset(trace->rings, 0, bytes); /* its page faults are off the clock */
    trace->start_ns = clock_now_ns();
    return trace;
}

void trace_destroy(struct trace *trace)
{
    if (trace)
        free(trace->rings);
    free(trace);
}

struct trace_ring *trace_ring(struct trace *trace, uint32_t index, const char *thread)
{
    if (!trace)
        return NULL;
    assert(index < trace->ring_count);
    snprintf(trace->rings[index].thread, sizeof trace->rings[index].thread, "%s", thread);
    return &trace->rings[index];
}

static uint64_t lost_of(const struct trace_ring *ring)
{
    return ring->count > TRACE_SPANS ? ring->count - TRACE_SPANS : 0;
}

uint64_t trace_lost(const struct trace *trace)
{
    uint64_t lost = 0;

    for (uint32_t i = 0; i < trace->ring_count; i++)
        lost += lost_of(&trace->rings[i]);
    return lost;
}

/* Perfetto knows these three keys alone, and takes times for ns where the unit is "ns". Times of
 * events are in us. */
void trace_print(const struct trace *trace, FILE *stream)
{
    unsigned long long id = 0;
    char event[160];

    fprintf(stream,
            "{\"otherData\": {\"iobench\": \"%s\", \"lost\": %llu}, \"displayTimeUnit\": \"ms\", "
            "\"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", "
            "\"args\": {\"name\": \"iobench\"}}",
            PACKAGE_VERSION, (unsigned long long)trace_lost(trace));
    for (uint32_t i = 0; i < trace->ring_count; i++) {
        const struct trace_ring *ring = &trace->rings[i];
        fprintf(stream,
                ",\n{\"ph\": \"M\", \"pid\": 1, \"tid\": %u, \"name\": \"thread_name\", "
                "\"args\": {\"name\": \"%s\"}}",
                i + 1, ring->thread);
        for (uint64_t at = lost_of(ring); at < ring->count; at++, id++) {
            const struct trace_span *span = &ring->spans[at % TRACE_SPANS];
            const struct trace_kind *kind = span->kind;
            const double from_us = (double)(span->from_ns - trace->start_ns) / 1e3;
            const double us = (double)(span->to_ns - span->from_ns) / 1e3;
            /* A span that overlaps others is a pair of events with one id. */
            snprintf(event, sizeof event,
                     "\"cat\": \"%s\", \"name\": \"%s\", \"pid\": 1, \"tid\": %u, \"id\": %llu",
                     kind->name, kind->name, i + 1, id);
            fprintf(stream, ",\n{\"ph\": \"%s\", %s, \"ts\": %.3f, \"dur\": %.3f",
                    kind->overlaps ? "b" : "X", event, from_us, us);
            for (int k = 0; k < TRACE_FIGURES && kind->figures[k]; k++)
                fprintf(stream, "%s\"%s\": %lld", k ? ", " : ", \"args\": {", kind->figures[k],
                        (long long)span->figures[k]);
            fprintf(stream, kind->overlaps ? "}},\n{\"ph\": \"e\", %s, \"ts\": %.3f}" : "}}", event,
                    from_us + us);
        }
    }
    fputs("\n]}\n", stream);
}
