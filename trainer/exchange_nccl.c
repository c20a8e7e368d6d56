/* SPDX-License-Identifier: Apache-2.0
 *
 * The nccl exchange as the program has it: MPI brings the ranks together and adds up what the host
 * counts; NCCL, in the module iobench-nccl.so, adds up what lies on GPUs.
 */
#include "trainer/plugins.h"

#include "base/fail.h"
#include "base/memory.h"
#include "trainer/cuda/nccl.h"
#include "trainer/module.h"

#include <errno.h>
#include <stdlib.h>

struct nccl_exchange {
    void *mpi;
    struct exchange_place place;
    const struct nccl_ops *ops;
    void *nccl;
};

static const struct nccl_ops *module_ops(void)
{
    static const char *const libraries[] = {"libnccl.so.2", NULL};
    static const struct module module = {.file = "iobench-nccl.so",
                                         .variable = "IOBENCH_NCCL_MODULE",
                                         .symbol = "iobench_nccl",
                                         .libraries = libraries};

    return module_find(&module);
}

static int nccl_usable(void)
{
    int code = plugin_usable(&exchange_mpi.plugin);

    if (code)
        return code;
    return module_ops() ? 0 : -ENODEV;
}

static int nccl_join(void *state, struct exchange_place *place)
{
    struct nccl_exchange *nccl = state;

    nccl->ops = module_ops();
    if (!nccl->ops)
        return -ENODEV;
    nccl->mpi = memory_zeroed(exchange_mpi.plugin.state_size);
    if (!nccl->mpi)
        return -ENOMEM;
    int code = exchange_mpi.join(nccl->mpi, place);
    nccl->place = *place;
    return code;
}

/* The first rank's identity comes to all: a sum to which nobody else adds anything. */
static int share_identity(struct nccl_exchange *nccl, uint8_t id[NCCL_ID_BYTES])
{
    double numbers[NCCL_ID_BYTES + 1] = {0};
    int code = 0;

    if (nccl->place.rank == 0) {
        code = nccl->ops->identify(id);
        numbers[NCCL_ID_BYTES] = code != 0; /* the others wait, and must hear of it */
        for (int i = 0; i < NCCL_ID_BYTES && code == 0; i++)
            numbers[i] = id[i];
    }
    int shared = exchange_mpi.sum(nccl->mpi, numbers, NCCL_ID_BYTES + 1);
    for (int i = 0; i < NCCL_ID_BYTES; i++)
        id[i] = (uint8_t)numbers[i];
    if (code || shared)
        return code ? code : shared;
    return numbers[NCCL_ID_BYTES] > 0 ? fail(EIO, "exchange nccl: the first rank has no NCCL") : 0;
}

static int nccl_open(void *state, const struct exchange_site *site)
{
    struct nccl_exchange *nccl = state;
    /* MPI compares layouts, and knows how long to wait. */
    const struct exchange_site host = {.floats = site->floats,
                                       .layout = site->layout,
                                       .buckets = 1,
                                       .timeout_ns = site->timeout_ns};
    struct nccl_site where = {
        .rank = nccl->place.rank, .ranks = nccl->place.ranks, .exchange = *site};

    if (!site->on_device)
        return fail(EINVAL, "exchange nccl adds up on GPUs: use --backend cuda, or --exchange mpi");
    int code = exchange_mpi.open(nccl->mpi, &host);
    if (code == 0)
        code = share_identity(nccl, where.id);
    if (code)
        return code;
    nccl->nccl = memory_zeroed(nccl->ops->state_size);
    return nccl->nccl ? nccl->ops->open(nccl->nccl, &where) : -ENOMEM;
}

static void nccl_leave(void *state, bool failed)
{
    struct nccl_exchange *nccl = state;

    if (nccl->nccl)
        nccl->ops->close(nccl->nccl, failed);
    free(nccl->nccl);
    nccl->nccl = NULL;
}

static void nccl_close(void *state, bool failed)
{
    struct nccl_exchange *nccl = state;

    nccl_leave(nccl, failed);
    if (nccl->mpi)
        exchange_mpi.close(nccl->mpi, failed);
    free(nccl->mpi);
}

static int nccl_ready(void *state, uint64_t done)
{
    struct nccl_exchange *nccl = state;

    return nccl->ops->ready(nccl->nccl, done);
}

static int nccl_finish(void *state)
{
    struct nccl_exchange *nccl = state;

    return nccl->ops->finish(nccl->nccl);
}

static int nccl_sum(void *state, double *values, uint32_t count)
{
    struct nccl_exchange *nccl = state;

    return exchange_mpi.sum(nccl->mpi, values, count);
}

static int nccl_gather(void *state, double value, double *values)
{
    struct nccl_exchange *nccl = state;

    return exchange_mpi.gather(nccl->mpi, value, values);
}

const struct exchange_ops exchange_nccl = {
    .plugin = {.name = "nccl",
               .summary = "NCCL's all-reduce between GPUs, a bucket at a time behind the backward "
                          "pass",
               .state_size = sizeof(struct nccl_exchange),
               .usable = nccl_usable},
    .on_stream = true,
    .join = nccl_join,
    .open = nccl_open,
    .leave = nccl_leave,
    .close = nccl_close,
    .ready = nccl_ready,
    .finish = nccl_finish,
    .sum = nccl_sum,
    .gather = nccl_gather,
};
