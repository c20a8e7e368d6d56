# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_view
tests_unit_test_view_SOURCES = tests/unit/test_view.c tests/unit/unit.h
tests_unit_test_view_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_checksum
tests_unit_test_checksum_SOURCES = tests/unit/test_checksum.c tests/unit/unit.h
tests_unit_test_checksum_LDADD = $(UNIT_LIBS)
