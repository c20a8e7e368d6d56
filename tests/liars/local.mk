# SPDX-License-Identifier: Apache-2.0
# Falsehoods injected into real runs: tests/liars/liars.sh. tests/liars/all.sh runs all groups.
LIAR_TESTS = tests/liars/cold.sh tests/liars/counters.sh tests/liars/data.sh \
	tests/liars/plugins.sh tests/liars/compare.sh tests/liars/ranks.sh tests/liars/epochs.sh \
	tests/liars/table.sh
TESTS += $(LIAR_TESTS)
EXTRA_DIST += $(LIAR_TESTS) tests/liars/liars.sh tests/liars/groups.sh tests/liars/all.sh
check_PROGRAMS += tests/liars/liar.so
tests_liars_liar_so_SOURCES = tests/liars/liar.c
tests_liars_liar_so_LDADD =
tests_liars_liar_so_CFLAGS = $(WARNINGS) -pthread -fPIC
tests_liars_liar_so_LDFLAGS = -shared
if HAVE_URING
check_PROGRAMS += tests/liars/ring.so
tests_liars_ring_so_SOURCES = tests/liars/ring.c
tests_liars_ring_so_LDADD =
tests_liars_ring_so_CFLAGS = $(WARNINGS) $(URING_CFLAGS) -fPIC
tests_liars_ring_so_LDFLAGS = -shared
endif
# The program with its own registries, which replace the library's when linking.
check_PROGRAMS += tests/liars/liar
tests_liars_liar_SOURCES = $(iobench_SOURCES) tests/liars/plugins.c
tests_liars_liar_LDADD = $(LIBIOBENCH_LIBS)
