# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	readers/reader.c readers/reader.h \
	readers/plugins.h readers/registry.c \
	readers/handles.c readers/handles.h \
	readers/pool.c readers/pool.h \
	readers/null.c readers/pread.c readers/mmap.c
