# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	shuffle/plan.c shuffle/plan.h \
	shuffle/plugins.h shuffle/registry.c
