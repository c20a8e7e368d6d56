# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	cmd/checkpoint/job.c cmd/checkpoint/job.h \
	cmd/checkpoint/model.c cmd/checkpoint/model.h \
	cmd/checkpoint/registry.c \
	cmd/checkpoint/reads.c cmd/checkpoint/writes.c \
	cmd/checkpoint/save.c cmd/checkpoint/save.h \
	cmd/checkpoint/shared.c cmd/checkpoint/shared.h \
	cmd/checkpoint/snapshot.c cmd/checkpoint/snapshot.h \
	cmd/checkpoint/writer.c cmd/checkpoint/writer.h
if HAVE_URING
libiobench_a_SOURCES += cmd/checkpoint/writer_uring.c
endif
