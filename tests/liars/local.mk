# SPDX-License-Identifier: Apache-2.0
# Falsehoods that are put into real runs: tests/liars/liars.sh. tests/liars/all.sh prints all.
LIAR_TESTS = tests/liars/cold.sh tests/liars/counters.sh
TESTS += $(LIAR_TESTS)
EXTRA_DIST += $(LIAR_TESTS) tests/liars/liars.sh tests/liars/all.sh
check_PROGRAMS += tests/liars/liar.so
tests_liars_liar_so_SOURCES = tests/liars/liar.c
tests_liars_liar_so_CFLAGS = $(WARNINGS) -pthread -fPIC
tests_liars_liar_so_LDFLAGS = -shared
