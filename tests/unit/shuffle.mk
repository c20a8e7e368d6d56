# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_shuffle_order
tests_unit_test_shuffle_order_SOURCES = tests/unit/test_shuffle_order.c tests/unit/unit.h
tests_unit_test_shuffle_order_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_shuffle_quality
tests_unit_test_shuffle_quality_SOURCES = tests/unit/test_shuffle_quality.c tests/unit/unit.h
tests_unit_test_shuffle_quality_LDADD = $(UNIT_LIBS)
