/* SPDX-License-Identifier: Apache-2.0
 *
 * The nccl transport, the module iobench-net-nccl.so. Messages are collected until they are waited
 * for, and then started as one group, in which they cannot wait for each other.
 */
#include "base/fail.h"
#include "cmd/net/cuda/arena.h"

#include <assert.h>
#include <errno.h>
#include <nccl.h>
#include <stdio.h>

enum { REQUESTS = 2 * TRANSPORT_DEPTH };

struct nccl_request {
    uint32_t peer;
    bool sends;
    uint64_t at, bytes;
};

struct transport_nccl_state {
    struct gpu_arena arena;
    ncclComm_t ranks;
    struct nccl_request requests[REQUESTS];
    uint32_t count;
};

extern const struct transport_ops iobench_transport_nccl;

static int check_nccl(const struct transport_nccl_state *nccl, ncclResult_t status,
                      const char *what)
{
    if (status == ncclSuccess || status == ncclInProgress)
        return 0;
    const char *more = ncclGetLastError(nccl->ranks);
    return fail(EIO, "transport nccl: %s: %s%s%s", what, ncclGetErrorString(status),
                more && *more ? "; " : "", more ? more : "");
}

static int transport_nccl_open(void *state, const void *settings,
                               const struct transport_config *config)
{
    struct transport_nccl_state *nccl = state;
    struct ranks *ranks = config->ranks;
    ncclConfig_t usual = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = {0};
    int code = ranks_meet(ranks, gpu_arena_open(&nccl->arena, settings, config), NULL);

    if (code)
        return code;
    if (ranks->place.rank == 0) /* it makes the identity of the group */
        code = check_nccl(nccl, ncclGetUniqueId(&id), "make an identity");
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = ranks_broadcast(ranks, &id, sizeof id);
    if (code == 0)
        code = check_nccl(nccl,
                          ncclCommInitRankConfig(&nccl->ranks, (int)ranks->place.ranks, id,
                                                 (int)ranks->place.rank, &usual),
                          "join the other ranks");
    return code;
}

static void transport_nccl_close(void *state, bool failed)
{
    struct transport_nccl_state *nccl = state;

    if (nccl->ranks && failed)
        ncclCommAbort(nccl->ranks);
    else if (nccl->ranks)
        ncclCommDestroy(nccl->ranks);
    gpu_arena_close(&nccl->arena, failed);
}

static void transport_nccl_describe(void *state, char *text, size_t bytes)
{
    const struct transport_nccl_state *nccl = state;
    int version = 0;

    ncclGetVersion(&version);
    snprintf(text, bytes, "NCCL %d.%d.%d from GPU %u (%s)", version / 10000, version / 100 % 100,
             version % 100, nccl->arena.runtime.device, nccl->arena.runtime.name);
}

static int transport_nccl_start(void *state, const struct transport_message *message, bool sends)
{
    struct transport_nccl_state *nccl = state;

    assert(nccl->count < REQUESTS);
    nccl->requests[nccl->count++] = (struct nccl_request){.peer = message->peer,
                                                          .sends = sends,
                                                          .at = sends ? message->from : message->to,
                                                          .bytes = message->bytes};
    return 0;
}

/* Returns the first failure. */
static ncclResult_t end_group(ncclResult_t status)
{
    const ncclResult_t ended = ncclGroupEnd();

    return status == ncclSuccess ? ended : status;
}

static int transport_nccl_collective(void *state, enum collective kind, uint64_t out_at,
                                     uint64_t in_at, uint64_t bytes)
{
    struct transport_nccl_state *nccl = state;
    const struct ranks_place *place = &nccl->arena.config.ranks->place;
    const uint64_t each = bytes / place->ranks, own = place->rank * each;
    unsigned char *out = nccl->arena.memory + out_at, *in = nccl->arena.memory + in_at;
    const size_t floats = bytes / sizeof(float), part = each / sizeof(float);
    void *stream = nccl->arena.runtime.stream;
    ncclResult_t status = ncclSuccess;

    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        status = ncclAllReduce(out, in, floats, ncclFloat, ncclSum, nccl->ranks, stream);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        status = ncclReduceScatter(out, in + own, part, ncclFloat, ncclSum, nccl->ranks, stream);
        break;
    case COLLECTIVE_ALL_GATHER:
        status = ncclAllGather(out + own, in, each, ncclUint8, nccl->ranks, stream);
        break;
    case COLLECTIVE_BROADCAST:
        status = ncclBroadcast(out, in, bytes, ncclUint8, 0, nccl->ranks, stream);
        break;
    case COLLECTIVE_ALL_TO_ALL:
        status = ncclGroupStart();
        for (uint32_t i = 0; i < place->ranks && status == ncclSuccess; i++) {
            status = ncclSend(out + i * each, each, ncclUint8, (int)i, nccl->ranks, stream);
            if (status == ncclSuccess)
                status = ncclRecv(in + i * each, each, ncclUint8, (int)i, nccl->ranks, stream);
        }
        status = end_group(status);
        break;
    case COLLECTIVES:
        break;
    }
    const int code = check_nccl(nccl, status, "start a collective");
    return code ? code : gpu_arena_start(&nccl->arena);
}

static int transport_nccl_test(void *state, bool *done)
{
    struct transport_nccl_state *nccl = state;
    ncclResult_t status = ncclSuccess;
    int code = gpu_arena_test(&nccl->arena, done);

    if (code == 0 && *done && nccl->count > 0) {
        void *stream = nccl->arena.runtime.stream;
        status = ncclGroupStart();
        for (uint32_t i = 0; i < nccl->count && status == ncclSuccess; i++) {
            const struct nccl_request *request = &nccl->requests[i];
            unsigned char *data = nccl->arena.memory + request->at;
            const int peer = (int)request->peer;
            status = request->sends
                         ? ncclSend(data, request->bytes, ncclUint8, peer, nccl->ranks, stream)
                         : ncclRecv(data, request->bytes, ncclUint8, peer, nccl->ranks, stream);
        }
        code = check_nccl(nccl, end_group(status), "start messages");
        nccl->count = 0;
        *done = false;
        return code ? code : gpu_arena_start(&nccl->arena);
    }
    if (code == 0 && !*done)
        code = check_nccl(nccl, ncclCommGetAsyncError(nccl->ranks, &status), "ask for errors");
    return code ? code : check_nccl(nccl, status, "transfer");
}

const struct transport_ops iobench_transport_nccl = {
    .plugin = {.name = "nccl",
               .settings_size = sizeof(struct net_gpu_settings),
               .state_size = sizeof(struct transport_nccl_state),
               .usable = runtime_usable},
    .open = transport_nccl_open,
    .close = transport_nccl_close,
    .describe = transport_nccl_describe,
    .start = transport_nccl_start,
    .collective = transport_nccl_collective,
    .copy = gpu_arena_copy,
    .test = transport_nccl_test,
};
