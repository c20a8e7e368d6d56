# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/fabric_worked
tests_unit_fabric_worked_SOURCES = tests/unit/fabric_worked.c tests/unit/worked.h tests/unit/wire.h tests/unit/unit.h \
	tests/unit/manual_clock.c tests/unit/manual_clock.h \
	cmd/net/report.c cmd/net/report.h cmd/net/beside.h
tests_unit_fabric_worked_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_fabric
UNIT_TESTS += tests/unit/test_ranks
tests_unit_test_ranks_SOURCES = tests/unit/test_ranks.c tests/unit/team.c tests/unit/team.h tests/unit/golden.h \
	tests/unit/manual_clock.c tests/unit/manual_clock.h tests/unit/unit.h
