# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	kernels/resize.c kernels/resize.h
