# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	cmd/checkpoint/job.c \
	cmd/checkpoint/model.c cmd/checkpoint/model.h \
	cmd/checkpoint/registry.c \
	cmd/checkpoint/save.c cmd/checkpoint/save.h
if HAVE_URING
libiobench_a_SOURCES += cmd/checkpoint/writer_uring.c
endif
