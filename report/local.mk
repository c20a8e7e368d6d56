# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	report/csv.c report/file.c report/json.c report/text.c report/report.h \
	report/summary.c report/summary.h \
	report/words.c report/words.h
