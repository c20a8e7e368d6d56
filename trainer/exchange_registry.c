/* SPDX-License-Identifier: Apache-2.0
 * The exchanges; the first usable one is the default. */
#include "trainer/plugins.h"

const struct plugin *const exchange_registry[] = {
#ifdef HAVE_MPI
    &exchange_mpi.plugin,
#endif
#ifdef HAVE_NCCL
    &exchange_nccl.plugin,
#endif
#ifdef HAVE_CUDA
    &exchange_p2p.plugin,
#endif
    &exchange_none.plugin, NULL,
};
