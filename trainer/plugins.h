/* SPDX-License-Identifier: Apache-2.0
 * The members of the trainer family, for trainer/registry.c alone. */
#ifndef IOBENCH_TRAINER_PLUGINS_H
#define IOBENCH_TRAINER_PLUGINS_H

#include "trainer/trainer.h"

extern const struct trainer_ops trainer_none;
extern const struct trainer_ops trainer_replay;

#endif
