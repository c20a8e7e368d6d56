/* SPDX-License-Identifier: Apache-2.0
 * The trainers, in the order users see them. */
#include "trainer/plugins.h"

const struct plugin *const trainer_registry[] = {
    &trainer_none.plugin,
    &trainer_replay.plugin,
    &trainer_network.plugin,
    NULL,
};
