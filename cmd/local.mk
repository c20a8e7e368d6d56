# SPDX-License-Identifier: Apache-2.0
bin_PROGRAMS += iobench
iobench_SOURCES = cmd/main.c
iobench_LDADD = $(LIBIOBENCH_LIBS)
