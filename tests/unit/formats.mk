# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += tests/unit/test_protobuf
tests_unit_test_protobuf_SOURCES = tests/unit/test_protobuf.c tests/unit/unit.h
tests_unit_test_protobuf_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_recordio
tests_unit_test_recordio_SOURCES = tests/unit/test_recordio.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_recordio_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_tfrecord
tests_unit_test_tfrecord_SOURCES = tests/unit/test_tfrecord.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_tfrecord_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_golden
tests_unit_test_golden_SOURCES = tests/unit/test_golden.c tests/unit/unit.h
tests_unit_test_golden_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'
tests_unit_test_golden_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_caffe
tests_unit_test_caffe_SOURCES = tests/unit/test_caffe.c tests/unit/unit.h
tests_unit_test_caffe_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_lmdb
tests_unit_test_lmdb_SOURCES = tests/unit/test_lmdb.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_lmdb_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'
tests_unit_test_lmdb_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_files
tests_unit_test_files_SOURCES = tests/unit/test_files.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_files_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_tar
tests_unit_test_tar_SOURCES = tests/unit/test_tar.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_tar_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'
tests_unit_test_tar_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_mds
tests_unit_test_mds_SOURCES = tests/unit/test_mds.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_mds_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'
tests_unit_test_mds_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_ops
tests_unit_test_ops_SOURCES = tests/unit/test_ops.c tests/unit/folder.h tests/unit/unit.h
tests_unit_test_ops_LDADD = $(UNIT_LIBS)
