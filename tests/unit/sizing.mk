# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/sizing_worked
tests_unit_sizing_worked_SOURCES = tests/unit/sizing_worked.c tests/unit/unit.h
tests_unit_sizing_worked_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_profiles
UNIT_TESTS += tests/unit/test_sizing
