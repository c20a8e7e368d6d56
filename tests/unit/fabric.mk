# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_fabric
tests_unit_test_fabric_SOURCES = tests/unit/test_fabric.c tests/unit/unit.h
tests_unit_test_fabric_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_ranks_compare
tests_unit_test_ranks_compare_SOURCES = tests/unit/test_ranks_compare.c tests/unit/unit.h
tests_unit_test_ranks_compare_LDADD = $(UNIT_LIBS)
