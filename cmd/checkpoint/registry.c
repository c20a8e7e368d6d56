/* SPDX-License-Identifier: Apache-2.0
 * The writers, in order of preference. */
#include "cmd/checkpoint/writer.h"

const struct plugin *const writer_registry[] = {
#ifdef HAVE_URING
    &writer_uring.plugin,
#endif
    &writer_pwrite.plugin,
    NULL,
};
