/* SPDX-License-Identifier: Apache-2.0
 * The module of all that calls MPI: ranks, a transport and an exchange. */
#ifndef IOBENCH_RANKS_MPI_H
#define IOBENCH_RANKS_MPI_H

#include "base/module.h"

extern const struct module module_mpi; /* iobench-mpi.so */

#endif
