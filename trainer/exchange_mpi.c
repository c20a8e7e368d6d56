/* SPDX-License-Identifier: Apache-2.0
 * The mpi exchange's front end; the exchange is in the module iobench-mpi.so. */
#include "trainer/plugins.h"

#include "ranks/mpi.h"

static int mpi_usable(void)
{
    return module_usable(&exchange_mpi.place, &exchange_mpi.plugin);
}

const struct exchange_ops exchange_mpi = {
    .plugin = {.name = "mpi",
               .summary = "MPI's non-blocking all-reduce, a bucket at a time",
               .usable = mpi_usable},
    .place = {&module_mpi, "iobench_exchange_mpi"},
};
