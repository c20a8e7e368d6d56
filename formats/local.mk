# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	formats/format.h \
	formats/plugins.h formats/registry.c
