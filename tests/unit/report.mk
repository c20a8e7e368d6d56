# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/report_worked
tests_unit_report_worked_SOURCES = tests/unit/report_worked.c tests/unit/worked.h tests/unit/unit.h
tests_unit_report_worked_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_report
UNIT_TESTS += tests/unit/test_summary
UNIT_TESTS += tests/unit/test_replaced
UNIT_TESTS += tests/unit/test_compare
UNIT_TESTS += tests/unit/test_mlperf
UNIT_TESTS += tests/unit/test_ramp
UNIT_TESTS += tests/unit/test_arguments
UNIT_TESTS += tests/unit/test_sweep
UNIT_TESTS += tests/unit/test_timeline_files
UNIT_TESTS += tests/unit/test_figures
