# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	cmd/pack/cursor.c cmd/pack/cursor.h \
	cmd/pack/source.c cmd/pack/source.h \
	cmd/pack/source_dataset.c cmd/pack/source_mnist.c cmd/pack/source_synthetic.c \
	cmd/pack/packing.c cmd/pack/packing.h \
	cmd/pack/plugins.h cmd/pack/registry.c \
	cmd/pack/target.c cmd/pack/target.h
if HAVE_ARCHIVE
libiobench_a_SOURCES += cmd/pack/source_archive.c
noinst_LIBRARIES += cmd/pack/libarchive-source.a
cmd_pack_libarchive_source_a_SOURCES = cmd/pack/archive/archive.c
cmd_pack_libarchive_source_a_CFLAGS = $(AM_CFLAGS) -fPIC
SOURCE_ARCHIVE_LIBS = $(TAKE_ARCHIVE) cmd/pack/libarchive-source.a $(ARCHIVE_LIBS)
module_PROGRAMS += iobench-archive.so
iobench_archive_so_SOURCES = base/module_version.c
iobench_archive_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_archive_so_LDFLAGS = $(SANITIZE) -shared
iobench_archive_so_LDADD = $(SOURCE_ARCHIVE_LIBS)
endif
