/* SPDX-License-Identifier: Apache-2.0
 *
 * The p2p exchange: copies between GPUs of one host and sums on each, without NCCL, as a baseline
 * for it. It starts after the step, so none of it overlaps compute. Each rank reads its peers'
 * memory; between two rounds all ranks synchronise by counters in shared memory.
 *
 * Tree: in round i, ranks 2^i apart form pairs, and the lower one adds the other's floats to its
 * own; the sum is copied back the same way. Ring: the floats are split into one part per rank; in
 * each round a rank adds the part that its lower neighbour completed last, until each has the sum
 * of one part; then the sums circulate. Either way all ranks end with the same bits.
 */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/device.h"
#include "kernels/runtime.h"
#include "trainer/settings.h"
#include "trainer/exchange.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

struct p2p_state {
    struct exchange_config config;
    enum p2p_shape shape;
    void *stream;
    float *copied; /* copy of another rank's floats, to be added */
    void **theirs; /* per rank; NULL: this rank, or a rank that it does not read */
    struct buckets parts;
    struct ranks_memory turns; /* one gate per rank: rounds it has finished */
    uint64_t turn;
};

extern const struct exchange_ops iobench_exchange_p2p;

/* ---- opening ---- */

struct p2p_handle {
    uint8_t bytes[RUNTIME_HANDLE_BYTES];
};

/* A ring reads one neighbour, a tree several. */
static bool reads(const struct p2p_state *p2p, uint32_t other)
{
    const uint32_t rank = p2p->config.ranks->place.rank, ranks = p2p->config.ranks->place.ranks;
    const uint32_t apart = rank ^ other;

    if (p2p->shape == P2P_RING)
        return other != rank && other == (rank + ranks - 1) % ranks;
    return apart != 0 && (apart & (apart - 1)) == 0;
}

static int p2p_open(void *state, const void *settings, const struct exchange_config *config)
{
    const struct p2p_settings *wanted = settings;
    struct p2p_state *p2p = state;
    const uint32_t ranks = config->ranks->place.ranks;
    struct p2p_handle mine = {0};
    int code = 0;

    p2p->config = *config;
    p2p->shape = (enum p2p_shape)wanted->shape;
    p2p->parts = buckets_of(config->buckets.floats, ranks);
    if (!config->on_device)
        code = fail(EINVAL, "exchange p2p copies between GPUs: use --backend cuda, or "
                            "--exchange mpi");
    if (code == 0 && config->ranks->place.nodes > 1)
        code = fail(EINVAL, "exchange p2p works within one host: use --exchange nccl");
    if (code == 0)
        code = runtime_use(config->device);
    if (code == 0)
        code = runtime_stream_create(&p2p->stream);
    if (code == 0) /* let the other ranks map this one's gradients */
        code = runtime_share(config->gradients, mine.bytes);
    if (code == 0) {
        p2p->copied = runtime_allocate(config->buckets.floats * sizeof *p2p->copied);
        p2p->theirs = memory_array(ranks, sizeof *p2p->theirs);
        code = p2p->copied && p2p->theirs ? 0 : -ENOMEM;
    }
    struct p2p_handle *all = ranks_collect(config->ranks, &code, &mine, sizeof mine);
    if (code == 0)
        code = ranks_share(config->ranks, sizeof(struct gate), &p2p->turns);
    if (code == 0) {
        for (uint32_t i = 0; i < ranks && code == 0; i++)
            if (reads(p2p, i))
                code = runtime_reach(all[i].bytes, &p2p->theirs[i]);
        code = ranks_meet(config->ranks, code, NULL);
    }
    free(all);
    return code;
}

/* ---- a step ---- */

/* Wait until all ranks have finished as many rounds as this one. */
static int end_turn(struct p2p_state *p2p)
{
    const struct ranks_place *place = &p2p->config.ranks->place;
    const uint64_t start_ns = clock_now_ns();
    int code = 0;

    gate_raise(ranks_memory_of(&p2p->turns, place->local_rank), ++p2p->turn);
    for (uint32_t i = 0; i < place->ranks && code == 0; i++)
        while (code == 0 && gate_value(ranks_memory_of(&p2p->turns, i)) < p2p->turn) {
            code = ranks_watch(p2p->config.ranks, start_ns);
            sched_yield(); /* ranks may share CPUs */
        }
    return code;
}

/* Copy floats of another rank into this one's, or add them. Returns when done. */
static int pull(const struct p2p_state *p2p, uint32_t other, uint64_t start, uint64_t count,
                bool adds)
{
    float *ours = p2p->config.gradients + start;
    int code = runtime_copy_peer(adds ? p2p->copied : ours, p2p->config.device, p2p->theirs[other],
                                 start * sizeof *ours, count * sizeof *ours, p2p->stream);

    if (code == 0 && adds)
        code = device_sum(DEVICE_FP32, count, ours, p2p->copied, false, ours, p2p->stream);
    return code ? code : runtime_wait(p2p->stream);
}

static int tree(struct p2p_state *p2p)
{
    const uint32_t rank = p2p->config.ranks->place.rank, ranks = p2p->config.ranks->place.ranks;
    const uint64_t floats = p2p->config.buckets.floats;
    uint32_t apart = 1;
    int code = end_turn(p2p);

    for (; apart < ranks && code == 0; apart *= 2) {
        if (rank % (2 * apart) == 0 && rank + apart < ranks)
            code = pull(p2p, rank + apart, 0, floats, true);
        if (code == 0)
            code = end_turn(p2p);
    }
    while (apart > 1 && code == 0) {
        apart /= 2;
        if (rank % (2 * apart) == apart)
            code = pull(p2p, rank - apart, 0, floats, false);
        if (code == 0)
            code = end_turn(p2p);
    }
    return code;
}

static int ring(struct p2p_state *p2p)
{
    const uint32_t rank = p2p->config.ranks->place.rank, ranks = p2p->config.ranks->place.ranks;
    int code = end_turn(p2p);

    for (uint32_t i = 0; i < 2 * (ranks - 1) && code == 0; i++) {
        const bool adds = i < ranks - 1;
        const uint32_t done = adds ? i + 1 : i - (ranks - 1); /* parts after this rank's own */
        const uint32_t part = (rank + 2 * ranks - done) % ranks;
        if (part < p2p->parts.count) /* the last parts of a small arena may be empty */
            code = pull(p2p, (rank + ranks - 1) % ranks, buckets_start(&p2p->parts, part),
                        buckets_floats(&p2p->parts, part), adds);
        if (code == 0)
            code = end_turn(p2p);
    }
    return code;
}

static void p2p_close(void *state, bool failed)
{
    struct p2p_state *p2p = state;

    for (uint32_t i = 0; p2p->theirs && i < p2p->config.ranks->place.ranks; i++)
        if (p2p->theirs[i])
            runtime_leave(p2p->theirs[i]);
    if (p2p->turns.start && !failed)
        end_turn(p2p); /* no rank still reads memory about to be freed */
    runtime_release(p2p->copied);
    runtime_stream_destroy(p2p->stream);
    ranks_unshare(&p2p->turns);
    free(p2p->theirs);
}

static int p2p_finish(void *state)
{
    struct p2p_state *p2p = state;

    return p2p->shape == P2P_TREE ? tree(p2p) : ring(p2p);
}

const struct exchange_ops iobench_exchange_p2p = {
    .plugin = {.name = "p2p",
               .settings_size = sizeof(struct p2p_settings),
               .state_size = sizeof(struct p2p_state)},
    .on_device = true,
    .open = p2p_open,
    .close = p2p_close,
    .finish = p2p_finish,
};
