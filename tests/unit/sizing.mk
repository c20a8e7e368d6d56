# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_profiles
tests_unit_test_profiles_SOURCES = tests/unit/test_profiles.c tests/unit/unit.h
tests_unit_test_profiles_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_sizing
tests_unit_test_sizing_SOURCES = tests/unit/test_sizing.c tests/unit/unit.h
tests_unit_test_sizing_LDADD = $(UNIT_LIBS)
