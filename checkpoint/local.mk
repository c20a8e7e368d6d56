# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	checkpoint/content.c checkpoint/content.h \
	checkpoint/job.c checkpoint/job.h \
	checkpoint/manifest.c \
	checkpoint/model.c checkpoint/model.h \
	checkpoint/plugins.h checkpoint/registry.c \
	checkpoint/reads.c checkpoint/writes.c \
	checkpoint/restore.c checkpoint/restore.h \
	checkpoint/save.c checkpoint/save.h \
	checkpoint/shared.c checkpoint/shared.h \
	checkpoint/snapshot.c checkpoint/snapshot.h \
	checkpoint/writer.c checkpoint/writer.h checkpoint/writer_pwrite.c
if HAVE_URING
libiobench_a_SOURCES += checkpoint/writer_uring.c
endif
