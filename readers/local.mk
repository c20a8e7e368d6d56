# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	readers/reader.c readers/reader.h \
	readers/plugins.h readers/registry.c \
	readers/depth.c readers/depth.h \
	readers/io_pool.c readers/io_pool.h \
	readers/inflate.c readers/null.c readers/pread.c readers/mmap.c

if HAVE_LMDB
libiobench_a_SOURCES += readers/lmdb.c
endif

if HAVE_URING
libiobench_a_SOURCES += readers/uring.c readers/uring.h readers/uring_enter.c
endif

if HAVE_NVME
libiobench_a_SOURCES += readers/nvme.c readers/nvme.h
endif

if HAVE_NFS
libiobench_a_SOURCES += readers/nfs.c
endif
