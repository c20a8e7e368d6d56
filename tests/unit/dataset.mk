# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_synthesis
tests_unit_test_synthesis_SOURCES = tests/unit/test_synthesis.c tests/unit/allocations.h \
	tests/unit/unit.h
tests_unit_test_synthesis_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_sidecar
tests_unit_test_sidecar_SOURCES = tests/unit/test_sidecar.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_sidecar_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_manifest
tests_unit_test_manifest_SOURCES = tests/unit/test_manifest.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_manifest_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_read_only_store
tests_unit_test_read_only_store_SOURCES = tests/unit/test_read_only_store.c tests/unit/unit.h
tests_unit_test_read_only_store_LDADD = $(UNIT_LIBS)
