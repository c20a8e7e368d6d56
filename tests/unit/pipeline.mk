# SPDX-License-Identifier: Apache-2.0

# With all its invariants asserted.
UNIT_LONG += tests/unit/test_loader
tests_unit_test_loader_SOURCES = tests/unit/test_loader.c tests/unit/memory_reader.h tests/unit/unit.h pipeline/loader/loader.c
tests_unit_test_loader_CPPFLAGS = $(AM_CPPFLAGS) -DLOADER_CHECKS

UNIT_TESTS += tests/unit/options_worked
tests_unit_options_worked_SOURCES = tests/unit/options_worked.c tests/unit/unit.h
tests_unit_options_worked_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_engine_waits
UNIT_TESTS += tests/unit/test_engine_parts
UNIT_TESTS += tests/unit/test_reach
UNIT_TESTS += tests/unit/test_window
UNIT_TESTS += tests/unit/test_arenas
UNIT_TESTS += tests/unit/test_starved
tests_unit_test_starved_SOURCES = tests/unit/test_starved.c tests/unit/unit.h pipeline/loader/loader.c
tests_unit_test_starved_CPPFLAGS = $(AM_CPPFLAGS) -DLOADER_CHECKS
UNIT_TESTS += tests/unit/test_loaders
UNIT_TESTS += tests/unit/test_memory_limit
UNIT_TESTS += tests/unit/test_machine

UNIT_LONG += tests/unit/test_matrix
tests_unit_test_matrix_SOURCES = tests/unit/test_matrix.c tests/unit/folder.h tests/unit/unit.h

UNIT_TESTS += tests/unit/test_steady

UNIT_TESTS += tests/unit/test_engine_sink
tests_unit_test_engine_sink_SOURCES = tests/unit/test_engine_sink.c bench/job.c bench/job.h tests/unit/folder.h \
	tests/unit/unit.h

UNIT_TESTS += tests/unit/test_limit
UNIT_TESTS += tests/unit/test_rank_samples
UNIT_TESTS += tests/unit/test_pack
UNIT_TESTS += tests/unit/test_timeline
UNIT_TESTS += tests/unit/test_timeline_join
UNIT_TESTS += tests/unit/test_evidence_validity
tests_unit_test_evidence_validity_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=beneath_look,--wrap=cold_make
UNIT_TESTS += tests/unit/test_rows
UNIT_TESTS += tests/unit/test_invariants
UNIT_TESTS += tests/unit/test_gather
UNIT_TESTS += tests/unit/test_node_caches
