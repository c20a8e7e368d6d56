# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_shuffle_order
tests_unit_test_shuffle_order_SOURCES = tests/unit/test_shuffle_order.c \
	tests/unit/made_catalog.c tests/unit/made_catalog.h tests/unit/unit.h
tests_unit_test_shuffle_order_LDADD = $(UNIT_LIBS)
