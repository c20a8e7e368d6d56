# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/fabric_worked
tests_unit_fabric_worked_SOURCES = tests/unit/fabric_worked.c tests/unit/worked.h tests/unit/wire.h tests/unit/unit.h \
	tests/unit/manual_clock.c tests/unit/manual_clock.h \
	cmd/net_report.c cmd/net_report.h cmd/net_beside_report.c cmd/net_beside.h
tests_unit_fabric_worked_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_fabric
UNIT_TESTS += tests/unit/test_ranks_compare
