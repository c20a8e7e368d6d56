# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_storage
tests_unit_test_storage_SOURCES = tests/unit/test_storage.c tests/unit/unit.h tests/unit/folder.h
tests_unit_test_storage_LDADD = $(UNIT_LIBS)
