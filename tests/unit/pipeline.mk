# SPDX-License-Identifier: Apache-2.0

UNIT_LONG += tests/unit/test_loader
tests_unit_test_loader_SOURCES = tests/unit/test_loader.c tests/unit/memory_reader.h tests/unit/unit.h
tests_unit_test_loader_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_waits
tests_unit_test_waits_SOURCES = tests/unit/test_waits.c tests/unit/unit.h
tests_unit_test_waits_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_parts
tests_unit_test_parts_SOURCES = tests/unit/test_parts.c tests/unit/unit.h
tests_unit_test_parts_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_reach
tests_unit_test_reach_SOURCES = tests/unit/test_reach.c tests/unit/unit.h
tests_unit_test_reach_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_window
tests_unit_test_window_SOURCES = tests/unit/test_window.c tests/unit/unit.h
tests_unit_test_window_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_arenas
tests_unit_test_arenas_SOURCES = tests/unit/test_arenas.c tests/unit/unit.h
tests_unit_test_arenas_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_starved
tests_unit_test_starved_SOURCES = tests/unit/test_starved.c tests/unit/unit.h
tests_unit_test_starved_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_loaders
tests_unit_test_loaders_SOURCES = tests/unit/test_loaders.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_loaders_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_memory_limit
tests_unit_test_memory_limit_SOURCES = tests/unit/test_memory_limit.c tests/unit/folder.h \
	tests/unit/unit.h
tests_unit_test_memory_limit_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_machine
tests_unit_test_machine_SOURCES = tests/unit/test_machine.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_machine_LDADD = $(UNIT_LIBS)

UNIT_LONG += tests/unit/test_matrix
tests_unit_test_matrix_SOURCES = tests/unit/test_matrix.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_matrix_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_steady
tests_unit_test_steady_SOURCES = tests/unit/test_steady.c tests/unit/allocations.h \
	tests/unit/folder.h tests/unit/unit.h
tests_unit_test_steady_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_sink
tests_unit_test_sink_SOURCES = tests/unit/test_sink.c bench/job.c bench/job.h tests/unit/folder.h \
	tests/unit/unit.h
tests_unit_test_sink_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_limit
tests_unit_test_limit_SOURCES = tests/unit/test_limit.c tests/unit/unit.h
tests_unit_test_limit_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_rank_samples
tests_unit_test_rank_samples_SOURCES = tests/unit/test_rank_samples.c tests/unit/unit.h
tests_unit_test_rank_samples_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_pack
tests_unit_test_pack_SOURCES = tests/unit/test_pack.c tests/unit/allocations.h tests/unit/folder.h tests/unit/unit.h
tests_unit_test_pack_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_timeline
tests_unit_test_timeline_SOURCES = tests/unit/test_timeline.c tests/unit/unit.h
tests_unit_test_timeline_LDADD = $(UNIT_LIBS)
UNIT_TESTS += tests/unit/test_timeline_join
tests_unit_test_timeline_join_SOURCES = tests/unit/test_timeline_join.c tests/unit/unit.h
tests_unit_test_timeline_join_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_validity
tests_unit_test_validity_SOURCES = tests/unit/test_validity.c tests/unit/unit.h
tests_unit_test_validity_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_rows
tests_unit_test_rows_SOURCES = tests/unit/test_rows.c tests/unit/unit.h
tests_unit_test_rows_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_invariants
tests_unit_test_invariants_SOURCES = tests/unit/test_invariants.c tests/unit/unit.h
tests_unit_test_invariants_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_gather
tests_unit_test_gather_SOURCES = tests/unit/test_gather.c tests/unit/wire.h tests/unit/unit.h
tests_unit_test_gather_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_node_caches
tests_unit_test_node_caches_SOURCES = tests/unit/test_node_caches.c tests/unit/unit.h
tests_unit_test_node_caches_LDADD = $(UNIT_LIBS)
