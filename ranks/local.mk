# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += ranks/clock.c ranks/memory.c ranks/none.c ranks/plugins.h ranks/ranks.c \
	ranks/ranks.h ranks/registry.c

if HAVE_MPI
libiobench_a_SOURCES += ranks/mpi.c ranks/mpi.h
endif
