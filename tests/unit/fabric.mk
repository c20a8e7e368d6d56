# SPDX-License-Identifier: Apache-2.0

TEAM = tests/unit/team.c tests/unit/team.h tests/unit/golden.h tests/unit/manual_clock.c tests/unit/manual_clock.h tests/unit/unit.h
UNIT_TESTS += tests/unit/test_fabric tests/unit/test_ranks
tests_unit_test_fabric_SOURCES = tests/unit/test_fabric.c $(TEAM)
tests_unit_test_ranks_SOURCES = tests/unit/test_ranks.c $(TEAM)
