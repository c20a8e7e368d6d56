# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_escape
tests_unit_test_escape_SOURCES = tests/unit/test_escape.c tests/unit/allocations.h tests/unit/unit.h
tests_unit_test_escape_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_queue
tests_unit_test_queue_SOURCES = tests/unit/test_queue.c tests/unit/unit.h
tests_unit_test_queue_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_numa
tests_unit_test_numa_SOURCES = tests/unit/test_numa.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_numa_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_names
tests_unit_test_names_SOURCES = tests/unit/test_names.c tests/unit/unit.h
tests_unit_test_names_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_memory
tests_unit_test_memory_SOURCES = tests/unit/test_memory.c tests/unit/unit.h
tests_unit_test_memory_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_stats
tests_unit_test_stats_SOURCES = tests/unit/test_stats.c tests/unit/unit.h
tests_unit_test_stats_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_paired
tests_unit_test_paired_SOURCES = tests/unit/test_paired.c tests/unit/unit.h
tests_unit_test_paired_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_pace
tests_unit_test_pace_SOURCES = tests/unit/test_pace.c tests/unit/unit.h
tests_unit_test_pace_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_trend
tests_unit_test_trend_SOURCES = tests/unit/test_trend.c tests/unit/unit.h
tests_unit_test_trend_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_random
tests_unit_test_random_SOURCES = tests/unit/test_random.c tests/unit/unit.h
tests_unit_test_random_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_folder
tests_unit_test_folder_SOURCES = tests/unit/test_folder.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_folder_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_folder_tree
tests_unit_test_folder_tree_SOURCES = tests/unit/test_folder_tree.c tests/unit/folder.h tests/unit/unit.h tests/unit/mounts.h
tests_unit_test_folder_tree_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_folder_match
tests_unit_test_folder_match_SOURCES = tests/unit/test_folder_match.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_folder_match_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_child
tests_unit_test_child_SOURCES = tests/unit/test_child.c tests/unit/unit.h
tests_unit_test_child_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_headroom
tests_unit_test_headroom_SOURCES = tests/unit/test_headroom.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_headroom_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_stale_draft
tests_unit_test_stale_draft_SOURCES = tests/unit/test_stale_draft.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_stale_draft_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_histogram
tests_unit_test_histogram_SOURCES = tests/unit/test_histogram.c tests/unit/unit.h
tests_unit_test_histogram_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_clock
tests_unit_test_clock_SOURCES = tests/unit/test_clock.c tests/unit/unit.h
tests_unit_test_clock_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_workers
tests_unit_test_workers_SOURCES = tests/unit/test_workers.c tests/unit/unit.h
tests_unit_test_workers_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_whole_registers
tests_unit_test_whole_registers_SOURCES = tests/unit/test_whole_registers.c tests/unit/unit.h
tests_unit_test_whole_registers_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_gid
tests_unit_test_gid_SOURCES = tests/unit/test_gid.c tests/unit/unit.h
tests_unit_test_gid_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_fail
tests_unit_test_fail_SOURCES = tests/unit/test_fail.c tests/unit/unit.h
tests_unit_test_fail_LDADD = $(UNIT_LIBS)
