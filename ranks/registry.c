/* SPDX-License-Identifier: Apache-2.0
 * How ranks are joined; the first usable member is used. */
#include "ranks/plugins.h"

const struct plugin *const ranks_registry[] = {
#ifdef HAVE_MPI
    &ranks_mpi.plugin,
#endif
    &ranks_none.plugin,
    NULL,
};
