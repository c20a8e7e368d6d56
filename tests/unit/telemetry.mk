# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/telemetry_worked
tests_unit_telemetry_worked_SOURCES = tests/unit/telemetry_worked.c tests/unit/unit.h
tests_unit_telemetry_worked_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_storage
UNIT_TESTS += tests/unit/test_series

UNIT_TESTS += tests/unit/test_probes
tests_unit_test_probes_SOURCES = tests/unit/test_probes.c tests/unit/unit.h tests/unit/folder.h tests/unit/allocations.h
tests_unit_test_probes_CPPFLAGS = $(AM_CPPFLAGS) -DMOCK_NVML='"$(abs_builddir)/tests/unit/mock_nvml.so"'

UNIT_TESTS += tests/unit/test_telemetry
tests_unit_test_telemetry_SOURCES = tests/unit/test_telemetry.c tests/unit/session.h tests/unit/unit.h tests/unit/folder.h
tests_unit_test_telemetry_CPPFLAGS = $(tests_unit_test_probes_CPPFLAGS)

# A shared object in place of the NVML library.
check_PROGRAMS += tests/unit/mock_nvml.so
tests_unit_mock_nvml_so_SOURCES = tests/unit/mock_nvml.c
tests_unit_mock_nvml_so_LDADD =
tests_unit_mock_nvml_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_unit_mock_nvml_so_LDFLAGS = $(AM_LDFLAGS) -shared

UNIT_TESTS += tests/unit/test_guard
