# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_cold
tests_unit_test_cold_SOURCES = tests/unit/test_cold.c tests/unit/unit.h tests/unit/folder.h tests/unit/mounts.h
tests_unit_test_cold_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test_outside
tests_unit_test_outside_SOURCES = tests/unit/test_outside.c tests/unit/unit.h
tests_unit_test_outside_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test_server
tests_unit_test_server_SOURCES = tests/unit/test_server.c tests/unit/unit.h
tests_unit_test_server_LDADD = $(UNIT_LIBS)
