/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi: shared by all callers of MPI, the module iobench-mpi.so.
 */
#ifndef IOBENCH_RANKS_MPI_MPI_H
#define IOBENCH_RANKS_MPI_MPI_H

#include <stdint.h>

/* Around each call of MPI while a heart may beat: MPI admits one thread at a time. */
void mpi_lock(void);
void mpi_unlock(void);

/* Convert an MPI status to 0, or to -EIO with a reason, "WHO: WHAT: MPI's error text". */
int mpi_check(int status, const char *who, const char *what);
/* MPI counts in int: returns 0, or -E2BIG with a reason for a longer message. */
int mpi_check_size(uint64_t bytes, const char *who);

#endif
