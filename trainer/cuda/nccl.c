/* SPDX-License-Identifier: Apache-2.0
 *
 * The nccl exchange, the module iobench-nccl.so: sums over the GPUs of all ranks on a stream of its
 * own, ordered with the backend's by events. A captured step contains both.
 *
 * By default, if buckets overlap with compute, NCCL gets few multiprocessors, since each one it
 * holds is lost to the convolutions; with a single bucket nothing else runs, and NCCL takes as many
 * as it wants.
 */
#include "base/fail.h"
#include "kernels/device.h"
#include "kernels/runtime.h"
#include "trainer/settings.h"
#include "trainer/exchange.h"

#include <errno.h>
#include <nccl.h>
#include <stdio.h>

enum { OVERLAPPED_CTAS_MAX = 16 };

/* In FP16 the mean of the ranks' gradients travels times this: those above 64 overflow, which ends
 * the training, and those from 6e-8 on keep all digits. A power of two, as the factor of each rank
 * is. */
static const float wire_scale = 1024;

struct nccl_state {
    struct exchange_config config;
    ncclComm_t ranks;
    uint16_t *wire; /* the gradients in FP16; NULL: they travel as they are */
    float factor;   /* of each rank's */
    void (*release_wire)(void *memory);
    void *registered;
    char notice[400];
    void *stream; /* of the all-reduces */
    void *event;  /* orders both streams */
};

extern const struct exchange_ops iobench_exchange_nccl;
static int check_nccl(const struct nccl_state *nccl, ncclResult_t status, const char *what)
{
    if (status == ncclSuccess)
        return 0;
    const char *more = ncclGetLastError(nccl ? nccl->ranks : NULL);
    return fail(EIO, "exchange nccl: %s: %s%s%s", what, ncclGetErrorString(status),
                more && *more ? "; " : "", more ? more : "");
}

/* ---- memory ---- */

/* Only NCCL 2.19 and later has these; they are NULL if an older one is loaded. */
extern __typeof__(ncclMemAlloc) ncclMemAlloc __attribute__((weak));
extern __typeof__(ncclMemFree) ncclMemFree __attribute__((weak));

/* Allocate memory that NVLink switches can sum and network adapters can read in place. */
static void *nccl_allocate(uint64_t bytes)
{
    void *memory = NULL;
    int version = 0;

    if (!ncclMemAlloc || !ncclMemFree) {
        ncclGetVersion(&version);
        fail(ENOTSUP, "NCCL %d.%d has no ncclMemAlloc: needs 2.19", version / 10000,
             version / 100 % 100);
        return NULL;
    }
    const ncclResult_t status = ncclMemAlloc(&memory, bytes);
    if (status == ncclSuccess)
        return memory;
    const char *more = ncclGetLastError(NULL);
    fail(ENOMEM, "ncclMemAlloc: %s%s%s", ncclGetErrorString(status), more && *more ? "; " : "",
         more ? more : "");
    return NULL;
}

static void nccl_release(void *memory)
{
    if (memory)
        ncclMemFree(memory);
}

/* ---- opening ---- */

static int nccl_open(void *state, const void *settings_given, const struct exchange_config *config)
{
    const struct nccl_settings *settings = settings_given;
    struct nccl_state *nccl = state;
    const struct ranks_place *place = &config->ranks->place;
    ncclConfig_t limits = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = {0};
    uint64_t bytes = config->buckets.floats * sizeof *config->gradients;

    if (!config->on_device)
        return fail(EINVAL, "exchange nccl sums on GPUs: use --backend cuda, or --exchange mpi");
    nccl->config = *config;
    if (settings->ctas)
        limits.maxCTAs = (int)settings->ctas;
    else if (nccl->config.buckets.count > 1)
        limits.maxCTAs = OVERLAPPED_CTAS_MAX;
    /* The first rank creates an identity, before NCCL is initialised. */
    int code = place->rank == 0 ? check_nccl(NULL, ncclGetUniqueId(&id), "make an identity") : 0;
    code = ranks_meet(config->ranks, code, NULL);
    if (code == 0)
        code = ranks_broadcast(config->ranks, &id, sizeof id);
    if (code == 0)
        code = runtime_use(config->device);
    if (code == 0)
        code = runtime_stream_create(&nccl->stream);
    if (code == 0)
        code = runtime_event_create(&nccl->event);
    if (code == 0 && settings->wire == EXCHANGE_FP16) {
        /* The sum of the gradients, each times this, is their mean times wire_scale, or less. */
        nccl->factor = wire_scale;
        for (uint32_t i = 1; i < place->ranks; i *= 2)
            nccl->factor /= 2;
        bytes = config->buckets.floats * sizeof *nccl->wire;
        nccl->wire = nccl_allocate(bytes);
        nccl->release_wire = nccl_release;
        if (!nccl->wire) {
            snprintf(nccl->notice, sizeof nccl->notice,
                     "gradients are sent from memory that NCCL may have to copy: %.200s",
                     fail_reason());
            nccl->wire = runtime_allocate(bytes);
            nccl->release_wire = runtime_release;
            code = nccl->wire ? 0 : -ENOMEM;
        }
    }
    if (code == 0)
        code = check_nccl(
            nccl,
            ncclCommInitRankConfig(&nccl->ranks, (int)place->ranks, id, (int)place->rank, &limits),
            "join the other ranks");
    code = ranks_meet(config->ranks, code, NULL);
    if (code)
        return code;
    /* Registered memory is summed without a copy; else NCCL copies. With NCCL_LOCAL_REGISTER=0 it
     * says that it registered, and returns no handle. */
    void *sent = nccl->wire ? (void *)nccl->wire : config->gradients;
    const ncclResult_t status = ncclCommRegister(nccl->ranks, sent, bytes, &nccl->registered);
    if (status)
        nccl->registered = NULL;
    double copying = nccl->registered ? 0 : 1;
    code = ranks_sum(config->ranks, &copying, 1);
    if (code == 0 && copying > 0)
        snprintf(
            nccl->notice, sizeof nccl->notice,
            "NCCL copies the gradients of %.0f of %u ranks: it does not register their memory%s%s",
            copying, place->ranks, status ? ": " : "", status ? ncclGetErrorString(status) : "");
    return code;
}

static enum exchange_wire nccl_wire(const void *settings)
{
    return (enum exchange_wire)((const struct nccl_settings *)settings)->wire;
}

static const char *nccl_notice(const void *state)
{
    return ((const struct nccl_state *)state)->notice;
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
    if (nccl->wire)
        nccl->release_wire(nccl->wire);
    runtime_event_destroy(nccl->event);
    runtime_stream_destroy(nccl->stream);
}

/* Make one stream wait for the work now on the other. */
static int order_streams(const struct nccl_state *nccl, void *before, void *after)
{
    int code = runtime_event_record(nccl->event, before);

    return code ? code : runtime_event_await(nccl->event, after);
}

static int nccl_ready(void *state, uint64_t done)
{
    struct nccl_state *nccl = state;
    void *compute = nccl->config.stream;
    uint64_t start, count;
    int code = 0;

    while (code == 0 && buckets_next(&nccl->config.buckets, done, &start, &count)) {
        float *part = nccl->config.gradients + start;
        uint16_t *wire = nccl->wire ? nccl->wire + start : NULL;
        void *sent = wire ? (void *)wire : part;
        code = order_streams(nccl, compute, nccl->stream);
        if (code == 0 && wire)
            code = device_narrow(DEVICE_FP16, count, part, nccl->factor, wire, nccl->stream);
        if (code == 0)
            code = check_nccl(nccl,
                              ncclAllReduce(sent, sent, count, wire ? ncclHalf : ncclFloat, ncclSum,
                                            nccl->ranks, nccl->stream),
                              "add up gradients");
        if (code == 0 && wire)
            code = device_widen(DEVICE_FP16, count, wire, 1 / nccl->factor, part, nccl->stream);
    }
    if (code == 0 && nccl->config.buckets.started == nccl->config.buckets.count) {
        nccl->config.buckets.started = 0;
        code = order_streams(nccl, nccl->stream, compute);
    }
    return code;
}

/* Sums end with the step; asynchronous errors are reported here. */
static int nccl_finish(void *state)
{
    const struct nccl_state *nccl = state;
    ncclResult_t status = ncclSuccess;
    int code = check_nccl(nccl, ncclCommGetAsyncError(nccl->ranks, &status), "ask for errors");

    return code ? code : check_nccl(nccl, status, "add up gradients");
}

const struct exchange_ops iobench_exchange_nccl = {
    .plugin = {.name = "nccl",
               .settings_size = sizeof(struct nccl_settings),
               .state_size = sizeof(struct nccl_state)},
    .on_stream = true,
    .is_ring = true,
    .allocate = nccl_allocate,
    .release = nccl_release,
    .open = nccl_open,
    .close = nccl_close,
    .ready = nccl_ready,
    .finish = nccl_finish,
    .wire = nccl_wire,
    .notice = nccl_notice,
};
