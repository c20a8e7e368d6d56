/* SPDX-License-Identifier: Apache-2.0
 * The members that do nothing. */
#include "trainer/plugins.h"

const struct trainer_ops trainer_none = {
    .plugin = {.name = "none", .summary = "accepts batches without delay", .idle = true},
};

const struct exchange_ops exchange_none = {
    .plugin = {.name = "none", .summary = "one process, alone"},
};
