/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime: the part of the CUDA runtime that backends and transports use; tests replace it by the
 * host (tests/cuda/emulated_runtime.c). Streams, events and graphs are opaque pointers. 0 or a
 * negative errno with a reason. One thread.
 */
#ifndef IOBENCH_KERNELS_RUNTIME_H
#define IOBENCH_KERNELS_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

enum { RUNTIME_HANDLE_BYTES = 64 };

struct runtime {
    uint32_t device;
    uint32_t capability; /* 90: sm_90 */
    uint32_t multiprocessors;
    uint32_t driver; /* 13000: supports CUDA 13.0 */
    uint64_t memory_bytes;
    double memory_rate; /* bytes per millisecond, by its clock and bus; 0: unknown */
    bool captures;      /* CUDA graphs are supported */
    char name[64];
    void *stream; /* everything except uploads */
    void *upload;
};

int runtime_usable(void);
/* local_rank: processes on this host take devices in turn, starting at `device`. */
int runtime_open(struct runtime *runtime, uint32_t device, uint32_t local_rank);
void runtime_close(struct runtime *runtime);

/* Select a device that another caller opened; once per thread. */
int runtime_use(uint32_t device);
int runtime_stream_create(void **stream);
void runtime_stream_destroy(void *stream);

/* Device memory, aligned to 256 bytes. NULL with a reason. */
void *runtime_allocate(uint64_t bytes);
void runtime_release(void *memory);
/* Pinned host memory. */
void *runtime_pin(uint64_t bytes);
void runtime_unpin(void *memory);

/* Share device memory with other processes of this host by a handle. They may pass the mapping to
 * runtime_copy_peer() only, and leave it before it is released. */
int runtime_share(void *memory, uint8_t handle[RUNTIME_HANDLE_BYTES]);
int runtime_reach(const uint8_t handle[RUNTIME_HANDLE_BYTES], void **theirs);
void runtime_leave(void *theirs);
/* Copy from `offset` in theirs to this process's device, ordered by the stream. */
int runtime_copy_peer(void *to, uint32_t device, const void *theirs, uint64_t offset,
                      uint64_t bytes, void *stream);

/* Copy between host and device, ordered by the stream. */
int runtime_copy(void *to, const void *from, uint64_t bytes, void *stream);
int runtime_zero(void *memory, uint64_t bytes, void *stream);
/* Wait for all work on the stream. */
int runtime_wait(void *stream);

int runtime_event_create(void **event);
void runtime_event_destroy(void *event);
int runtime_event_record(void *event, void *stream);
/* Record it for runtime_event_elapsed() alone. While a graph is captured, each launch of the graph
 * records it, which costs a node of the graph. */
int runtime_event_stamp(void *event, void *stream);
/* Make later work on the stream wait for the event. */
int runtime_event_await(void *event, void *stream);
/* Wait for the event, sleeping: other threads need the CPU. */
int runtime_event_synchronise(void *event);
/* The same with a timeout; 0: none. -ETIMEDOUT. */
int runtime_event_wait_for(void *event, uint64_t timeout_ns);
/* Has it happened? */
int runtime_event_test(void *event, bool *happened);
/* Negative if the second came first. Both must have happened. */
int runtime_event_elapsed(void *first, void *last, double *milliseconds);

/* Capture work put on the stream between the two calls as a graph, without running it. */
int runtime_capture_begin(void *stream);
int runtime_capture_end(void *stream, void **graph);
int runtime_graph_launch(void *graph, void *stream);
/* A running graph is destroyed when it is done, without waiting. */
void runtime_graph_destroy(void *graph);

/* Name a span in the profiler's timeline. */
void runtime_range_push(const char *name);
void runtime_range_pop(void);

#endif
