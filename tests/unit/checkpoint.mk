# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_checkpoint_durable
tests_unit_test_checkpoint_durable_SOURCES = tests/unit/test_checkpoint_durable.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_checkpoint_durable_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_checkpoint_space
tests_unit_test_checkpoint_space_SOURCES = tests/unit/test_checkpoint_space.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_checkpoint_space_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/checkpoint_worked
tests_unit_checkpoint_worked_SOURCES = tests/unit/checkpoint_worked.c tests/unit/worked.h tests/unit/wire.h tests/unit/unit.h \
	cmd/checkpoint_report.c cmd/checkpoint_report.h
tests_unit_checkpoint_worked_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_model_files
tests_unit_test_model_files_SOURCES = tests/unit/test_model_files.c tests/unit/unit.h
tests_unit_test_model_files_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_save
tests_unit_test_save_SOURCES = tests/unit/test_save.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_save_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_snapshot
tests_unit_test_snapshot_SOURCES = tests/unit/test_snapshot.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_snapshot_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_writer
tests_unit_test_writer_SOURCES = tests/unit/test_writer.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_writer_LDADD = $(UNIT_LIBS)
