# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	trainer/trainer.c trainer/trainer.h \
	trainer/plugins.h trainer/registry.c \
	trainer/none.c
