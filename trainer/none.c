/* SPDX-License-Identifier: Apache-2.0
 * The none trainer: accepts batches without delay. */
#include "trainer/plugins.h"

const struct trainer_ops trainer_none = {
    .plugin = {.name = "none", .summary = "accepts batches without delay", .idle = true},
};
