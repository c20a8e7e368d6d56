/* SPDX-License-Identifier: Apache-2.0
 *
 * The mpi transport's front end; the transport is in the module iobench-mpi.so.
 */
#include "cmd/net/transport.h"

#include "ranks/ranks.h"

const struct transport_ops transport_mpi = {
    .plugin = {.name = "mpi",
               .summary = "messages and collectives of the MPI that started the job",
               .module = &module_mpi,
               .symbol = "iobench_transport_mpi"},
};
