# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	base/atomic.h \
	base/stop.c base/stop.h \
	base/bytes.c base/bytes.h \
	base/landlock.c base/landlock.h \
	base/child.c base/child.h \
	base/clock.c base/clock.h \
	base/crc32c.c base/crc32c.h \
	base/draft.c base/draft.h \
	base/escape.c base/escape.h \
	base/fail.c base/fail.h \
	base/file.c base/file.h \
	base/folder.c base/folder.h \
	base/gid.c base/gid.h \
	base/gradients.h \
	base/heap.c base/heap.h \
	base/sample.c base/sample.h \
	base/image_header.c base/image_header.h \
	base/json.c base/json.h \
	base/control_group.c base/control_group.h \
	base/memory.c base/memory.h \
	base/module_version.c \
	base/option.c base/option.h \
	base/plugin.c base/plugin.h \
	base/vector.h \
	base/random.c base/random.h \
	base/stats.c base/stats.h \
	base/trace.c base/trace.h \
	base/thread.c base/thread.h
if SANITIZERS
libiobench_a_SOURCES += base/leaks.c
endif
