# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += ranks/plugins.h ranks/ranks.c ranks/ranks.h ranks/registry.c

if HAVE_MPI
libiobench_a_SOURCES += ranks/mpi.c
noinst_LIBRARIES += ranks/libmpi-ranks.a
ranks_libmpi_ranks_a_SOURCES = ranks/mpi/mpi.h ranks/mpi/ranks.c cmd/net/mpi/transport.c trainer/mpi/exchange.c
ranks_libmpi_ranks_a_CFLAGS = $(AM_CFLAGS) -fPIC
MPI_RANKS_LIBS = $(TAKE_MPI) ranks/libmpi-ranks.a $(MPI_LIBS)
module_PROGRAMS += iobench-mpi.so
iobench_mpi_so_SOURCES = base/module_version.c
iobench_mpi_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_mpi_so_LDFLAGS = $(SANITIZE) -shared
iobench_mpi_so_LDADD = $(MPI_RANKS_LIBS)
endif
