/* SPDX-License-Identifier: Apache-2.0
 *
 * The module of the nccl exchange.
 *
 * If buckets overlap with compute, NCCL gets few multiprocessors, since each one it holds is lost
 * to the convolutions; with a single bucket nothing else runs, and NCCL takes as many as it wants.
 */
#include "trainer/cuda/nccl.h"

#include "base/fail.h"
#include "trainer/buckets.h"
#include "trainer/cuda/runtime.h"

#include <errno.h>
#include <nccl.h>
#include <string.h>

enum { OVERLAPPED_CTAS_MAX = 16 };

struct nccl_state {
    struct nccl_site site;
    struct buckets buckets;
    ncclComm_t ranks;
    void *registered;
    void *stream; /* of the all-reduces */
    void *event;  /* orders both streams */
};

extern const char iobench_module_version[];
extern const struct nccl_ops iobench_nccl;
const char iobench_module_version[] = PACKAGE_VERSION;

static int check(const struct nccl_state *nccl, ncclResult_t status, const char *what)
{
    if (status == ncclSuccess)
        return 0;
    const char *more = ncclGetLastError(nccl ? nccl->ranks : NULL);
    return fail(EIO, "exchange nccl: %s: %s%s%s", what, ncclGetErrorString(status),
                more && *more ? "; " : "", more ? more : "");
}

static int nccl_identify(uint8_t id[NCCL_ID_BYTES])
{
    ncclUniqueId made;

    _Static_assert(sizeof made == NCCL_ID_BYTES, "an identity's size");
    int code = check(NULL, ncclGetUniqueId(&made), "make an identity");
    memcpy(id, &made, sizeof made);
    return code;
}

static int nccl_open(void *state, const struct nccl_site *site)
{
    struct nccl_state *nccl = state;
    const struct exchange_config *where = &site->exchange;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    nccl->site = *site;
    nccl->buckets = buckets_of(where->floats, where->buckets);
    if (nccl->buckets.count > 1)
        config.maxCTAs = OVERLAPPED_CTAS_MAX;
    memcpy(&id, site->id, sizeof id);
    int code = runtime_use(where->device);
    if (code == 0)
        code = runtime_stream_create(&nccl->stream);
    if (code == 0)
        code = runtime_event_create(&nccl->event);
    if (code == 0)
        code = check(
            nccl,
            ncclCommInitRankConfig(&nccl->ranks, (int)site->ranks, id, (int)site->rank, &config),
            "join the other ranks");
    /* Registered buffers are summed without a copy; if that is not supported, NCCL copies. */
    if (code == 0 && ncclCommRegister(nccl->ranks, where->gradients,
                                      where->floats * sizeof *where->gradients, &nccl->registered))
        nccl->registered = NULL;
    return code;
}

static void nccl_close(void *state, bool failed)
{
    struct nccl_state *nccl = state;

    if (failed) {
        if (nccl->ranks)
            ncclCommAbort(nccl->ranks);
        return; /* closing the rest may wait for work that never ends; exiting does not */
    }
    if (nccl->ranks) {
        if (nccl->registered)
            ncclCommDeregister(nccl->ranks, nccl->registered);
        ncclCommDestroy(nccl->ranks);
    }
    runtime_event_destroy(nccl->event);
    runtime_stream_destroy(nccl->stream);
}

/* Make one stream wait for the work now on the other. */
static int order(const struct nccl_state *nccl, void *before, void *after)
{
    int code = runtime_event_record(nccl->event, before);

    return code ? code : runtime_event_await(nccl->event, after);
}

static int nccl_ready(void *state, uint64_t done)
{
    struct nccl_state *nccl = state;
    void *compute = nccl->site.exchange.stream;
    uint64_t start, count;
    int code = 0;

    while (code == 0 && buckets_next(&nccl->buckets, done, &start, &count)) {
        float *part = nccl->site.exchange.gradients + start;
        code = order(nccl, compute, nccl->stream);
        if (code == 0)
            code = check(
                nccl,
                ncclAllReduce(part, part, count, ncclFloat, ncclSum, nccl->ranks, nccl->stream),
                "add up gradients");
    }
    if (code == 0 && nccl->buckets.started == nccl->buckets.count) {
        nccl->buckets.started = 0;
        code = order(nccl, nccl->stream, compute);
    }
    return code;
}

/* Sums end with the step; asynchronous errors are reported here. */
static int nccl_finish(void *state)
{
    const struct nccl_state *nccl = state;
    ncclResult_t status = ncclSuccess;
    int code = check(nccl, ncclCommGetAsyncError(nccl->ranks, &status), "ask for errors");

    return code ? code : check(nccl, status, "add up gradients");
}

const struct nccl_ops iobench_nccl = {
    .state_size = sizeof(struct nccl_state),
    .identify = nccl_identify,
    .open = nccl_open,
    .close = nccl_close,
    .ready = nccl_ready,
    .finish = nccl_finish,
};
