/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi: shared by all callers of MPI.
 */
#ifndef IOBENCH_RANKS_MPI_H
#define IOBENCH_RANKS_MPI_H

/* Converts an MPI status: 0, or -EIO with a reason, "WHO: WHAT: MPI's error text". */
int mpi_check(int status, const char *who, const char *what);

#endif
