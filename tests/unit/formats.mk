# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_protobuf
tests_unit_test_protobuf_SOURCES = tests/unit/test_protobuf.c tests/unit/unit.h
tests_unit_test_protobuf_LDADD = $(UNIT_LIBS)
