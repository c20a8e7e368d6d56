# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	trainer/backend.h trainer/graph.h \
	trainer/trainer.c trainer/trainer.h \
	trainer/plugins.h trainer/registry.c \
	trainer/accelerator.c trainer/accelerator.h \
	trainer/profile.c trainer/profile.h \
	trainer/none.c trainer/replay.c
