/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime: what the cuda backend takes of the CUDA runtime, and no more; so that tests can put the
 * host's memory in its place (tests/cuda/emulated_runtime.c). Streams, events and graphs are
 * pointers that only it looks into. 0 or a negative errno with a reason. One thread.
 */
#ifndef IOBENCH_TRAINER_CUDA_RUNTIME_H
#define IOBENCH_TRAINER_CUDA_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

enum { RUNTIME_HANDLE_BYTES = 64 };

struct runtime {
    uint32_t device;
    uint32_t capability; /* 90 for sm_90 */
    uint32_t multiprocessors;
    uint32_t driver; /* 13000 for one that knows CUDA 13.0 */
    uint64_t memory_bytes;
    bool captures; /* CUDA graphs can be made */
    char name[64];
    void *stream; /* all work but uploads */
    void *upload;
};

int runtime_usable(void);
/* local_rank: of several processes on this host, which take the devices from `device` on in turn.
 */
int runtime_open(struct runtime *runtime, uint32_t device, uint32_t local_rank);
void runtime_close(struct runtime *runtime);

/* For who works on a device that somebody else opened; in each thread. */
int runtime_use(uint32_t device);
int runtime_stream_create(void **stream);
void runtime_stream_destroy(void *stream);

/* Device memory, aligned to 256 bytes. NULL with a reason. */
void *runtime_allocate(uint64_t bytes);
void runtime_release(void *memory);
/* Host memory that uploads go from at full speed. */
void *runtime_pin(uint64_t bytes);
void runtime_unpin(void *memory);

/* Device memory for other processes of this host: a handle that tells them where it is, and what
 * they make of it, for runtime_copy_peer() alone. They leave it before it is released. */
int runtime_share(void *memory, uint8_t handle[RUNTIME_HANDLE_BYTES]);
int runtime_reach(const uint8_t handle[RUNTIME_HANDLE_BYTES], void **theirs);
void runtime_leave(void *theirs);
/* From `offset` on in theirs, to this process' device; in the stream's order. */
int runtime_copy_peer(void *to, uint32_t device, const void *theirs, uint64_t offset,
                      uint64_t bytes, void *stream);

/* Between host and device, either way; in the stream's order. */
int runtime_copy(void *to, const void *from, uint64_t bytes, void *stream);
int runtime_zero(void *memory, uint64_t bytes, void *stream);
/* Until all that was started on the stream is done. */
int runtime_wait(void *stream);

int runtime_event_create(void **event);
void runtime_event_destroy(void *event);
int runtime_event_record(void *event, void *stream);
/* What is put on the stream from now on starts after the event. */
int runtime_event_await(void *event, void *stream);
/* Until the moment has come. The host's thread sleeps meanwhile: others need its CPU. */
int runtime_event_synchronise(void *event);
/* The same, for at most so long; 0: for ever. -ETIMEDOUT. */
int runtime_event_wait_for(void *event, uint64_t timeout_ns);
/* Below 0 when the second came first. Both must have come. */
int runtime_event_elapsed(void *first, void *last, double *milliseconds);

/* What is started on the stream between the two becomes a graph, which does not run yet. */
int runtime_capture_begin(void *stream);
int runtime_capture_end(void *stream, void **graph);
int runtime_graph_launch(void *graph, void *stream);
/* One that runs goes when it is done, which is not waited for. */
void runtime_graph_destroy(void *graph);

/* A named span in the profiler's time line. */
void runtime_range_push(const char *name);
void runtime_range_pop(void);

#endif
