/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's memory in place of a device's, for trainer/cuda/runtime.h. With the kernels built for
 * the host too, this makes a cuda backend that runs everywhere, slowly, and whose every step can be
 * compared. Fresh memory holds what is no number, so that what is read before it is written shows.
 */
#include "trainer/cuda/runtime.h"

#include "base/fail.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

int runtime_usable(void)
{
    return 0;
}

int runtime_open(struct runtime *runtime, uint32_t device, uint32_t local_rank)
{
    (void)local_rank;
    *runtime = (struct runtime){
        .device = device, .capability = 90, .multiprocessors = 132, .name = "emulated"};
    return 0;
}

void runtime_close(struct runtime *runtime)
{
    (void)runtime;
}

void *runtime_allocate(uint64_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, ALIGNMENT, bytes + 1)) {
        fail(ENOMEM, "out of memory");
        return NULL;
    }
    return memset(memory, 0xff, bytes);
}

void runtime_release(void *memory)
{
    free(memory);
}

void *runtime_pin(uint64_t bytes)
{
    return runtime_allocate(bytes);
}

void runtime_unpin(void *memory)
{
    free(memory);
}

int runtime_copy(void *to, const void *from, uint64_t bytes, void *stream)
{
    (void)stream;
    memcpy(to, from, bytes);
    return 0;
}

int runtime_zero(void *memory, uint64_t bytes, void *stream)
{
    (void)stream;
    memset(memory, 0, bytes);
    return 0;
}

int runtime_wait(void *stream)
{
    (void)stream;
    return 0;
}

int runtime_wait_for(void *stream, uint64_t timeout_ns)
{
    (void)timeout_ns;
    return runtime_wait(stream);
}

int runtime_use(uint32_t device)
{
    (void)device;
    return 0;
}

int runtime_stream_create(void **stream)
{
    *stream = NULL;
    return 0;
}

void runtime_stream_destroy(void *stream)
{
    (void)stream;
}

void runtime_range_push(const char *name)
{
    (void)name;
}

void runtime_range_pop(void) {}

/* Never called: nothing is captured, and there is no other stream. */
int runtime_capture_begin(void *stream)
{
    (void)stream;
    return fail(ENOTSUP, "no graphs on the host");
}

int runtime_capture_end(void *stream, void **graph)
{
    (void)graph;
    return runtime_capture_begin(stream);
}

int runtime_graph_launch(void *graph, void *stream)
{
    (void)graph;
    return runtime_capture_begin(stream);
}

void runtime_graph_destroy(void *graph)
{
    (void)graph;
}

/* All is done when a call returns; nobody takes the time. */
int runtime_event_create(void **event)
{
    *event = NULL;
    return 0;
}

void runtime_event_destroy(void *event)
{
    (void)event;
}

int runtime_event_record(void *event, void *stream)
{
    (void)event;
    (void)stream;
    return 0;
}

int runtime_event_await(void *event, void *stream)
{
    return runtime_event_record(event, stream);
}

int runtime_event_mark(void *event, void *stream)
{
    return runtime_event_record(event, stream);
}

int runtime_event_synchronise(void *event)
{
    (void)event;
    return 0;
}

int runtime_event_elapsed(void *first, void *last, double *milliseconds)
{
    (void)first;
    (void)last;
    *milliseconds = 0;
    return 0;
}
