# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	cachectl/beneath.c cachectl/beneath.h \
	cachectl/cold.c cachectl/cold.h \
	cachectl/each_file.c cachectl/each_file.h \
	cachectl/disks.c cachectl/disks.h \
	cachectl/drop.c cachectl/drop.h \
	cachectl/evict.c cachectl/evict.h \
	cachectl/holders.c cachectl/holders.h \
	cachectl/listing.c cachectl/listing.h \
	cachectl/outside.c cachectl/outside.h \
	cachectl/residency.c cachectl/residency.h \
	cachectl/server.c cachectl/server.h cachectl/server_parse.c
AM_CPPFLAGS += -DBINDIR='"$(bindir)"'

bin_PROGRAMS += cachectl/cachectl
cachectl_cachectl_SOURCES = cachectl/main.c
cachectl_cachectl_LDADD = libiobench.a $(JANSSON_LIBS)
dist_man_MANS += packaging/man/cachectl.1
