/* SPDX-License-Identifier: Apache-2.0
 *
 * The nccl exchange's front end: ranks find each other through ranks/ranks.h; NCCL, in the module
 * iobench-nccl.so, sums gradients on GPUs.
 */
#include "trainer/plugins.h"

#include "base/fail.h"
#include "base/memory.h"
#include "trainer/cuda/nccl.h"
#include "trainer/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct nccl_exchange {
    const struct nccl_ops *ops;
    void *nccl;
};

static int nccl_usable(void)
{
    return module_find(&module_nccl, "iobench_nccl") ? 0 : -ENODEV;
}

/* The identity that the first rank creates, before NCCL is initialised. */
static int share_identity(const struct nccl_ops *ops, const struct exchange_config *config,
                          uint8_t id[NCCL_ID_BYTES])
{
    uint8_t mine[NCCL_ID_BYTES] = {0};
    uint8_t *all = memory_array(config->ranks->place.ranks, sizeof mine);
    int code = all ? 0 : -ENOMEM;

    if (code == 0 && config->ranks->place.rank == 0)
        code = ops->identify(mine);
    code = ranks_meet(config->ranks, code, NULL);
    if (code == 0)
        code = ranks_gather(config->ranks, mine, sizeof mine, all);
    if (code == 0)
        memcpy(id, all, NCCL_ID_BYTES);
    free(all);
    return code;
}

static int nccl_open(void *state, const void *settings, const struct exchange_config *config)
{
    struct nccl_exchange *nccl = state;
    struct nccl_site where = {.rank = config->ranks->place.rank,
                              .ranks = config->ranks->place.ranks,
                              .exchange = *config};

    (void)settings;
    if (!config->on_device)
        return fail(EINVAL, "exchange nccl sums on GPUs: use --backend cuda, or --exchange mpi");
    nccl->ops = module_find(&module_nccl, "iobench_nccl");
    int code = nccl->ops ? share_identity(nccl->ops, config, where.id) : -ENODEV;
    if (code)
        return code;
    nccl->nccl = memory_zeroed(nccl->ops->state_size);
    return nccl->nccl ? nccl->ops->open(nccl->nccl, &where) : -ENOMEM;
}

static void nccl_close(void *state, bool failed)
{
    struct nccl_exchange *nccl = state;

    if (nccl->nccl)
        nccl->ops->close(nccl->nccl, failed);
    free(nccl->nccl);
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

const struct exchange_ops exchange_nccl = {
    .plugin = {.name = "nccl",
               .summary = "NCCL's all-reduce between GPUs, a bucket at a time behind the backward "
                          "pass",
               .state_size = sizeof(struct nccl_exchange),
               .usable = nccl_usable},
    .on_stream = true,
    .open = nccl_open,
    .close = nccl_close,
    .ready = nccl_ready,
    .finish = nccl_finish,
};
