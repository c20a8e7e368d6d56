# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_protobuf
UNIT_TESTS += tests/unit/test_recordio
UNIT_TESTS += tests/unit/test_tfrecord

UNIT_TESTS += tests/unit/test_golden
tests_unit_test_golden_SOURCES = tests/unit/test_golden.c tests/unit/unit.h
tests_unit_test_golden_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'

UNIT_TESTS += tests/unit/test_caffe

UNIT_TESTS += tests/unit/test_lmdb
tests_unit_test_lmdb_SOURCES = tests/unit/test_lmdb.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_lmdb_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'

UNIT_TESTS += tests/unit/test_files

UNIT_TESTS += tests/unit/test_tar
tests_unit_test_tar_SOURCES = tests/unit/test_tar.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_tar_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'

UNIT_TESTS += tests/unit/test_mds
tests_unit_test_mds_SOURCES = tests/unit/test_mds.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_mds_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'

UNIT_TESTS += tests/unit/test_ops
