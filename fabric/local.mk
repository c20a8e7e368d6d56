# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	fabric/collective.c fabric/collective.h \
	fabric/matrix.c fabric/matrix.h \
	fabric/measure.c fabric/measure.h \
	fabric/pattern.c fabric/pattern.h \
	fabric/plugins.h fabric/registry.c \
	fabric/survey.c fabric/survey.h \
	fabric/transport.c fabric/transport.h

if HAVE_MPI
libiobench_a_SOURCES += fabric/mpi.c
endif
