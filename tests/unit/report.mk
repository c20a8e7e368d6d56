# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/report_worked
tests_unit_report_worked_SOURCES = tests/unit/report_worked.c tests/unit/worked.h tests/unit/unit.h
tests_unit_report_worked_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_report
UNIT_TESTS += tests/unit/test_summary
UNIT_TESTS += tests/unit/test_replaced
UNIT_TESTS += tests/unit/test_compare
UNIT_TESTS += tests/unit/test_mlperf
UNIT_TESTS += tests/unit/test_arguments
UNIT_TESTS += tests/unit/test_sweep
UNIT_TESTS += tests/unit/test_evaluate
UNIT_TESTS += tests/unit/test_svg
UNIT_TESTS += tests/unit/test_timeline_files
UNIT_TESTS += tests/unit/test_figures

# The tables of docs/ from the rows of the figures.
UNIT_TESTS += tests/unit/test_figure_pages
figures: tests/unit/test_figure_pages
	srcdir=$(srcdir) tests/unit/test_figure_pages write
.PHONY: figures

# All of iobench but main().
UNIT_TESTS += tests/unit/test_pages tests/unit/test_ramp
COMMANDS = $(filter-out cmd/main.$(OBJEXT),$(iobench_OBJECTS))
tests_unit_test_ramp_LDADD = $(tests_unit_test_pages_LDADD)
tests_unit_test_ramp_DEPENDENCIES = $(tests_unit_test_pages_DEPENDENCIES)
tests_unit_test_pages_LDADD = $(COMMANDS) $(MODULE_HOST_LIBS) $(CMOCKA_LIBS)
tests_unit_test_pages_DEPENDENCIES = $(COMMANDS) libiobench.a
tests_unit_test_pages_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=infer_run,--wrap=run_jobs,--wrap=service_measure \
	-Wl,--wrap=storage_between,--wrap=guard_end,--wrap=devices_of_path,--wrap=gethostname,--wrap=command_join
