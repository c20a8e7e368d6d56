/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi: shared by all callers of MPI, the module iobench-mpi.so.
 */
#ifndef IOBENCH_RANKS_MPI_MPI_H
#define IOBENCH_RANKS_MPI_MPI_H

/* Convert an MPI status to 0, or to -EIO with a reason, "WHO: WHAT: MPI's error text". */
int mpi_check(int status, const char *who, const char *what);

#endif
