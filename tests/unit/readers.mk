# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_readers
tests_unit_test_readers_SOURCES = tests/unit/test_readers.c tests/unit/unit.h
tests_unit_test_readers_LDADD = $(UNIT_LIBS)
