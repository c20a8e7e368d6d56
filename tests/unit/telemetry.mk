# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_storage
tests_unit_test_storage_SOURCES = tests/unit/test_storage.c tests/unit/machine.h tests/unit/unit.h tests/unit/folder.h tests/unit/mounts.h
tests_unit_test_storage_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_series
tests_unit_test_series_SOURCES = tests/unit/test_series.c tests/unit/unit.h
tests_unit_test_series_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_probes
tests_unit_test_probes_SOURCES = tests/unit/test_probes.c tests/unit/machine.h tests/unit/unit.h tests/unit/folder.h \
	tests/unit/allocations.h
tests_unit_test_probes_CPPFLAGS = $(AM_CPPFLAGS) -DMOCK_NVML='"$(abs_builddir)/tests/unit/mock_nvml.so"'
tests_unit_test_probes_LDADD = $(UNIT_LIBS)

# A shared object in place of the NVML library.
check_PROGRAMS += tests/unit/mock_nvml.so
tests_unit_mock_nvml_so_SOURCES = tests/unit/mock_nvml.c
tests_unit_mock_nvml_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_unit_mock_nvml_so_LDFLAGS = $(AM_LDFLAGS) -shared

UNIT_TESTS += tests/unit/test_beneath
tests_unit_test_beneath_SOURCES = tests/unit/test_beneath.c tests/unit/machine.h tests/unit/unit.h tests/unit/folder.h
tests_unit_test_beneath_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_guard
tests_unit_test_guard_SOURCES = tests/unit/test_guard.c tests/unit/unit.h tests/unit/folder.h
tests_unit_test_guard_LDADD = $(UNIT_LIBS)
