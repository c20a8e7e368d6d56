# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	cachectl/cold.c cachectl/cold.h \
	cachectl/outside.c cachectl/outside.h \
	cachectl/residency.c cachectl/residency.h \
	cachectl/server.c cachectl/server.h
AM_CPPFLAGS += -DBINDIR='"$(bindir)"'

bin_PROGRAMS += cachectl/cachectl
cachectl_cachectl_SOURCES = cachectl/main.c
cachectl_cachectl_LDADD = libiobench.a $(JANSSON_LIBS)
dist_man_MANS += packaging/man/cachectl.1
