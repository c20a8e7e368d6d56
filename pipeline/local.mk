# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	pipeline/job.c pipeline/job.h pipeline/result.h pipeline/run.h
