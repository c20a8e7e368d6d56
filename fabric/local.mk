# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	fabric/collective.c fabric/collective.h \
	fabric/matrix.c fabric/matrix.h \
	fabric/measure.c fabric/measure.h \
	fabric/pattern.c fabric/pattern.h \
	fabric/plugins.h fabric/registry.c \
	fabric/survey.c fabric/survey.h \
	fabric/tcp.c fabric/tcp.h fabric/tcp_connect.c fabric/tcp_plain.c fabric/tcp_registry.c \
	fabric/transport.c fabric/transport.h

if HAVE_MPI
libiobench_a_SOURCES += fabric/mpi.c
endif

if HAVE_URING
libiobench_a_SOURCES += fabric/tcp_uring.c
endif
