# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	pack/cursor.c pack/cursor.h \
	pack/inspect.c pack/inspect.h \
	pack/labels.c pack/labels.h \
	pack/shard_writer.c pack/shard_writer.h \
	pack/source.c pack/source.h \
	pack/source_dataset.c pack/source_mnist.c pack/source_synthetic.c \
	pack/pack.c pack/pack.h \
	pack/image_check.c pack/image_check.h \
	pack/place.c pack/place.h \
	pack/plugins.h pack/registry.c \
	pack/recoder.c pack/recoder.h \
	pack/target.c pack/target.h \
	pack/verify.c pack/verify.h
if HAVE_ARCHIVE
libiobench_a_SOURCES += pack/source_archive.c
noinst_LIBRARIES += pack/libarchive-source.a
pack_libarchive_source_a_SOURCES = pack/archive/archive.c
pack_libarchive_source_a_CFLAGS = $(AM_CFLAGS) -fPIC
SOURCE_ARCHIVE_LIBS = $(TAKE_ARCHIVE) pack/libarchive-source.a $(ARCHIVE_LIBS)
module_PROGRAMS += iobench-archive.so
iobench_archive_so_SOURCES = base/module_version.c
iobench_archive_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_archive_so_LDFLAGS = $(SANITIZE) -shared
iobench_archive_so_LDADD = $(SOURCE_ARCHIVE_LIBS)
endif
