# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_replay
tests_unit_test_replay_SOURCES = tests/unit/test_replay.c tests/unit/unit.h
tests_unit_test_replay_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_networks
tests_unit_test_networks_SOURCES = tests/unit/test_networks.c tests/unit/unit.h
tests_unit_test_networks_LDADD = $(UNIT_LIBS)
