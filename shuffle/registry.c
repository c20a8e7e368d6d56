/* SPDX-License-Identifier: Apache-2.0
 * The shuffle strategies, in the order users see them. */
#include "shuffle/plugins.h"

const struct plugin *const shuffle_registry[] = {
    &shuffle_none.plugin,
    &shuffle_epoch.plugin,
    &shuffle_buffer.plugin,
    NULL,
};
