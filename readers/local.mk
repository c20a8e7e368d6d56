# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	readers/reader.c readers/reader.h \
	readers/plugins.h readers/registry.c \
	readers/depth.c readers/depth.h \
	readers/handles.c readers/handles.h \
	readers/parallel_reader.c readers/parallel_reader.h \
	readers/zero_copy.c readers/zero_copy.h \
	readers/io_pool.c readers/io_pool.h \
	readers/rate.c readers/rate.h \
	readers/service.c readers/service.h \
	readers/waker.h \
	readers/inflate.c readers/null.c readers/pread.c readers/mmap.c

if HAVE_LMDB
libiobench_a_SOURCES += readers/lmdb.c
endif

if HAVE_URING
libiobench_a_SOURCES += readers/uring.c readers/uring.h
if URING_IS_OLD
libiobench_a_SOURCES += readers/uring_enter_old.c
else
libiobench_a_SOURCES += readers/uring_enter.c
endif
endif

if HAVE_NVME
libiobench_a_SOURCES += readers/nvme.c readers/nvme_disk.c readers/nvme_disk.h

endif
EXTRA_DIST += readers/uring_enter.c readers/uring_enter_old.c

if HAVE_NFS
libiobench_a_SOURCES += readers/nfs.c
endif
