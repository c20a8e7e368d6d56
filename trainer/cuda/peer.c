/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/peer.h"

#include "kernels/device.h"

#include <errno.h>

struct peer_state {
    struct peer_site site;
    void *stream;
    float *copied; /* copy of another process's floats, to be added */
};

extern const struct peer_ops iobench_peer;

static int peer_open(void *state, const struct peer_site *site,
                     uint8_t handle[RUNTIME_HANDLE_BYTES])
{
    struct peer_state *peer = state;

    peer->site = *site;
    int code = runtime_use(site->device);
    if (code == 0)
        code = runtime_stream_create(&peer->stream);
    if (code == 0)
        code = runtime_share(site->floats, handle);
    if (code)
        return code;
    peer->copied = runtime_allocate(site->count * sizeof *peer->copied);
    return peer->copied ? 0 : -ENOMEM;
}

static void peer_close(void *state)
{
    struct peer_state *peer = state;

    runtime_release(peer->copied);
    runtime_stream_destroy(peer->stream);
}

static int peer_pull(void *state, const void *theirs, uint64_t start, uint64_t count, bool adds)
{
    const struct peer_state *peer = state;
    float *ours = peer->site.floats + start;
    int code = runtime_copy_peer(adds ? peer->copied : ours, peer->site.device, theirs,
                                 start * sizeof *ours, count * sizeof *ours, peer->stream);

    if (code == 0 && adds)
        code = device_sum(DEVICE_FP32, count, ours, peer->copied, false, ours, peer->stream);
    return code ? code : runtime_wait(peer->stream);
}

const struct peer_ops iobench_peer = {
    .state_size = sizeof(struct peer_state),
    .open = peer_open,
    .close = peer_close,
    .reach = runtime_reach,
    .leave = runtime_leave,
    .pull = peer_pull,
};
