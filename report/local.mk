# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	report/compare.c report/compare_report.c report/compare.h \
	report/load.c report/load.h report/seal.c report/seal.h \
	report/sizing.c report/sizing.h \
	report/csv.c report/file.c report/json.c report/print.c report/text.c report/report.h \
	report/gnuplot.c report/gnuplot.h report/chart.c report/chart.h \
	report/ranks.c report/ranks.h report/timeline.c report/timeline_csv.c report/timeline_json.c \
	report/summary.c report/summary.h \
	report/words.c report/words.h
