# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_report
tests_unit_test_report_SOURCES = tests/unit/test_report.c tests/unit/allocations.h tests/unit/unit.h
tests_unit_test_report_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_summary
tests_unit_test_summary_SOURCES = tests/unit/test_summary.c tests/unit/unit.h
tests_unit_test_summary_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_replaced
tests_unit_test_replaced_SOURCES = tests/unit/test_replaced.c tests/unit/unit.h
tests_unit_test_replaced_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_compare
tests_unit_test_compare_SOURCES = tests/unit/test_compare.c tests/unit/unit.h
tests_unit_test_compare_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_mlperf
tests_unit_test_mlperf_SOURCES = tests/unit/test_mlperf.c tests/unit/unit.h
tests_unit_test_mlperf_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_ramp
tests_unit_test_ramp_SOURCES = tests/unit/test_ramp.c tests/unit/unit.h
tests_unit_test_ramp_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_arguments
tests_unit_test_arguments_SOURCES = tests/unit/test_arguments.c tests/unit/unit.h
tests_unit_test_arguments_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_sweep
tests_unit_test_sweep_SOURCES = tests/unit/test_sweep.c tests/unit/unit.h
tests_unit_test_sweep_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_timeline_files
tests_unit_test_timeline_files_SOURCES = tests/unit/test_timeline_files.c tests/unit/unit.h
tests_unit_test_timeline_files_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_figures
tests_unit_test_figures_SOURCES = tests/unit/test_figures.c tests/unit/unit.h
tests_unit_test_figures_LDADD = $(UNIT_LIBS)
