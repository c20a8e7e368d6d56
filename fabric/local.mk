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

if HAVE_VERBS
libiobench_a_SOURCES += fabric/verbs.c fabric/verbs_settings.h
VERBS_SOURCES = fabric/verbs/connect.c fabric/verbs/device.c fabric/verbs/move.c \
	fabric/verbs/verbs.c fabric/verbs/verbs.h
module_PROGRAMS += iobench-verbs.so
iobench_verbs_so_SOURCES = $(VERBS_SOURCES)
iobench_verbs_so_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
iobench_verbs_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_verbs_so_LDFLAGS = $(SANITIZE) -shared
iobench_verbs_so_LDADD = $(VERBS_LIBS)
endif
