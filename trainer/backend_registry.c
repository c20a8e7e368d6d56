/* SPDX-License-Identifier: Apache-2.0
 * The backends, in the order users see them; the first that works is the default. */
#include "trainer/plugins.h"

const struct plugin *const backend_registry[] = {
#ifdef HAVE_CUDA
    &backend_cuda.plugin,
#endif
#ifdef HAVE_DNNL
    &backend_cpu.plugin,
#endif
    &backend_reference.plugin,
    NULL,
};
