/* SPDX-License-Identifier: Apache-2.0
 *
 * arena: a GPU's copy of a transport's arena, and the stream that its transfers are put on. One
 * batch of transfers is under way at a time. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_CUDA_ARENA_H
#define IOBENCH_CMD_NET_CUDA_ARENA_H

#include "cmd/net/transport.h"
#include "kernels/runtime.h"

#include <assert.h>
#include <errno.h>

struct gpu_arena {
    struct transport_config config;
    struct runtime runtime;
    unsigned char *memory;
    void *event;
    bool is_busy; /* transfers are under way */
};

static inline int gpu_arena_open(struct gpu_arena *arena, const struct net_gpu_settings *settings,
                                 const struct transport_config *config)
{
    arena->config = *config;
    int code =
        runtime_open(&arena->runtime, (uint32_t)settings->device, config->ranks->place.local_rank);
    if (code)
        return code;
    arena->memory = runtime_allocate(config->bytes);
    return arena->memory ? runtime_event_create(&arena->event) : -ENOMEM;
}

/* failed: transfers may never end. */
static inline void gpu_arena_close(struct gpu_arena *arena, bool failed)
{
    if (failed) /* freeing may wait for transfers; exiting does not */
        return;
    runtime_event_destroy(arena->event);
    runtime_release(arena->memory);
    runtime_close(&arena->runtime);
}

/* transport_ops.copy of a transport whose state begins with its arena. */
static inline int gpu_arena_copy(void *state, bool back, uint64_t at, uint64_t bytes)
{
    struct gpu_arena *arena = state;
    unsigned char *host = arena->config.arena + at, *device = arena->memory + at;
    assert(!arena->is_busy && at + bytes <= arena->config.bytes);
    const int code =
        runtime_copy(back ? host : device, back ? device : host, bytes, arena->runtime.stream);

    return code ? code : runtime_wait(arena->runtime.stream);
}

/* Start a batch: all its transfers are on the stream. */
static inline int gpu_arena_start(struct gpu_arena *arena)
{
    arena->is_busy = true;
    return runtime_event_record(arena->event, arena->runtime.stream);
}

/* Is the batch done, if there is one? */
static inline int gpu_arena_test(struct gpu_arena *arena, bool *done)
{
    int code = 0;

    *done = true;
    if (arena->is_busy)
        code = runtime_event_test(arena->event, done);
    arena->is_busy = !*done;
    return code;
}

#endif
