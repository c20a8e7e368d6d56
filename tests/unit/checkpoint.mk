# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_checkpoint_durable
UNIT_TESTS += tests/unit/test_checkpoint_space

UNIT_TESTS += tests/unit/checkpoint_worked
tests_unit_checkpoint_worked_SOURCES = tests/unit/checkpoint_worked.c tests/unit/wire.h tests/unit/unit.h

UNIT_TESTS += tests/unit/test_model_files
UNIT_TESTS += tests/unit/test_save
UNIT_TESTS += tests/unit/test_snapshot
UNIT_TESTS += tests/unit/test_writer
