/* SPDX-License-Identifier: Apache-2.0
 * Members of the trainer, backend and exchange families, for their registries only. */
#ifndef IOBENCH_TRAINER_PLUGINS_H
#define IOBENCH_TRAINER_PLUGINS_H

#include "trainer/backend.h"
#include "trainer/exchange.h"
#include "trainer/trainer.h"

extern const struct trainer_ops trainer_none;
extern const struct trainer_ops trainer_replay;
extern const struct trainer_ops trainer_network;

extern const struct backend_ops backend_cpu;
extern const struct backend_ops backend_cuda;
extern const struct backend_ops backend_reference;

extern const struct exchange_ops exchange_nccl;
extern const struct exchange_ops exchange_p2p;

#endif
