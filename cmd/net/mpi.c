/* SPDX-License-Identifier: Apache-2.0
 *
 * The mpi transport's front end; the transport is in the module iobench-mpi.so.
 */
#include "cmd/net/transport.h"

#include "ranks/mpi.h"

static int mpi_usable(void)
{
    return module_usable(&transport_mpi.place, &transport_mpi.plugin);
}

const struct transport_ops transport_mpi = {
    .plugin = {.name = "mpi",
               .summary = "messages and collectives of the MPI that started the job",
               .usable = mpi_usable},
    .place = {&module_mpi, "iobench_transport_mpi"},
};
