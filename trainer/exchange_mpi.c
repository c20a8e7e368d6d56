/* SPDX-License-Identifier: Apache-2.0
 * The mpi exchange's front end; the exchange is in the module iobench-mpi.so. */
#include "trainer/plugins.h"

#include "ranks/ranks.h"

const struct exchange_ops exchange_mpi = {
    .plugin = {.name = "mpi",
               .summary = "MPI's non-blocking all-reduce, a bucket at a time",
               .module = &module_mpi,
               .symbol = "iobench_exchange_mpi"},
};
