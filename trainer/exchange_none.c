/* SPDX-License-Identifier: Apache-2.0
 * The none exchange: one rank, alone. */
#include "trainer/plugins.h"

const struct exchange_ops exchange_none = {
    .plugin = {.name = "none", .summary = "one process, alone"},
};
