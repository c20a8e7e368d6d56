# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	shuffle/plan.c shuffle/plan.h \
	shuffle/plugins.h shuffle/registry.c \
	shuffle/sequence.c shuffle/sequence.h \
	shuffle/coalesce.c shuffle/coalesce.h \
	shuffle/buffered.c \
	shuffle/windowed.c \
	shuffle/direct.c shuffle/ffcv.c \
	shuffle/mosaic.c \
	shuffle/preset.c shuffle/preset.h \
	shuffle/quality.c shuffle/quality.h
