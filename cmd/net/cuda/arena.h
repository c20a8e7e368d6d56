/* SPDX-License-Identifier: Apache-2.0
 *
 * arena: a GPU's copy of a transport's arena, and the stream that its transfers are put on. One
 * batch of transfers is under way at a time. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_CUDA_ARENA_H
#define IOBENCH_CMD_NET_CUDA_ARENA_H

#include "cmd/net/gpu_settings.h"
#include "cmd/net/transport.h"
#include "kernels/runtime.h"

struct gpu_arena {
    struct transport_config config;
    struct runtime runtime;
    unsigned char *memory;
    void *event;
    bool is_busy; /* transfers are under way */
};

int gpu_arena_open(struct gpu_arena *arena, const struct net_gpu_settings *settings,
                   const struct transport_config *config);
/* failed: transfers may never end. */
void gpu_arena_close(struct gpu_arena *arena, bool failed);
/* transport_ops.copy of a transport whose state begins with its arena. */
int gpu_arena_copy(void *arena, bool back, uint64_t at, uint64_t bytes);
/* Start a batch: all its transfers are on the stream. */
int gpu_arena_start(struct gpu_arena *arena);
/* Is the batch done, if there is one? */
int gpu_arena_test(struct gpu_arena *arena, bool *done);

#endif
