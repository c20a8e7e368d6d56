/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi: what all that calls MPI shares.
 */
#ifndef IOBENCH_RANKS_MPI_H
#define IOBENCH_RANKS_MPI_H

/* MPI's status as ours: 0, or -EIO with a reason, "WHO: WHAT: what MPI says of it". */
int mpi_check(int status, const char *who, const char *what);

#endif
