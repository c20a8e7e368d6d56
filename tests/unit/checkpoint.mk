# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_checkpoint_durable
UNIT_TESTS += tests/unit/test_checkpoint_space

UNIT_TESTS += tests/unit/test_checkpoint_ranks
tests_unit_test_checkpoint_ranks_SOURCES = tests/unit/test_checkpoint_ranks.c $(TEAM) tests/unit/folder.h

UNIT_TESTS += tests/unit/test_model_files
UNIT_TESTS += tests/unit/test_save
UNIT_TESTS += tests/unit/test_snapshot
UNIT_TESTS += tests/unit/test_writer
