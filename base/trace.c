/* SPDX-License-Identifier: Apache-2.0 */
#include "base/trace.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

uint64_t trace_bytes(uint32_t rings)
{
    return rings * sizeof(struct trace_ring);
}

struct trace *trace_create(uint32_t rings)
{
    struct trace *trace = memory_zeroed(sizeof *trace);

    if (!trace)
        return NULL;
    *trace = (struct trace){.ring_count = rings, .rings = memory_pages(trace_bytes(rings))};
    if (!trace->rings) {
        free(trace);
        return NULL;
    }
    memset(trace->rings, 0, trace_bytes(rings)); /* its page faults are off the clock */
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

/* Times are in us. id: of a span that overlaps others, the same at its begin and its end. */
static void print_event(FILE *stream, const char *phase, const struct trace_span *span,
                        uint64_t at_ns, uint32_t thread, uint64_t id)
{
    fprintf(stream, ",\n{\"ph\": \"%s\", \"pid\": 1, \"tid\": %u, \"name\": \"%s\", \"ts\": %.3f",
            phase, thread + 1, span->kind->name, (double)at_ns / 1e3);
    if (span->kind->overlaps)
        fprintf(stream, ", \"cat\": \"%s\", \"id\": %llu", span->kind->name,
                (unsigned long long)id);
    else
        fprintf(stream, ", \"dur\": %.3f", (double)(span->to_ns - span->from_ns) / 1e3);
}

static void print_span(FILE *stream, const struct trace *trace, const struct trace_span *span,
                       uint32_t thread, uint64_t id)
{
    const bool overlaps = span->kind->overlaps;

    print_event(stream, overlaps ? "b" : "X", span, span->from_ns - trace->start_ns, thread, id);
    for (int i = 0; i < TRACE_FIGURES && span->kind->figures[i]; i++)
        fprintf(stream, "%s\"%s\": %lld", i ? ", " : ", \"args\": {", span->kind->figures[i],
                (long long)span->figures[i]);
    fputs("}}", stream);
    if (!overlaps)
        return;
    print_event(stream, "e", span, span->to_ns - trace->start_ns, thread, id);
    fputc('}', stream);
}

/* Perfetto knows these three keys alone, and takes times for ns where the unit is "ns". */
void trace_print(const struct trace *trace, FILE *stream)
{
    uint64_t id = 0;

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
        for (uint64_t at = lost_of(ring); at < ring->count; at++)
            print_span(stream, trace, &ring->spans[at % TRACE_SPANS], i, id++);
    }
    fputs("\n]}\n", stream);
}
