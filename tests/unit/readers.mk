# SPDX-License-Identifier: Apache-2.0
READER_SET = tests/unit/reader_set.c tests/unit/reader_set.h tests/unit/unit.h

UNIT_TESTS += tests/unit/test_readers
tests_unit_test_readers_SOURCES = tests/unit/test_readers.c $(READER_SET)

UNIT_TESTS += tests/unit/test_wake
tests_unit_test_wake_SOURCES = tests/unit/test_wake.c $(READER_SET)

UNIT_TESTS += tests/unit/test_fault_guard
tests_unit_test_fault_guard_SOURCES = tests/unit/test_fault_guard.c $(READER_SET)

UNIT_TESTS += tests/unit/test_reader_faults
tests_unit_test_reader_faults_SOURCES = tests/unit/test_reader_faults.c $(READER_SET)

UNIT_TESTS += tests/unit/test_io_pool
tests_unit_test_io_pool_SOURCES = tests/unit/test_io_pool.c $(READER_SET)

UNIT_TESTS += tests/unit/test_inflate

UNIT_LONG += tests/unit/test_depth
tests_unit_test_depth_SOURCES = tests/unit/test_depth.c tests/unit/unit.h

if HAVE_LMDB
UNIT_TESTS += tests/unit/test_lmdb_reader
tests_unit_test_lmdb_reader_SOURCES = tests/unit/test_lmdb_reader.c tests/unit/folder.h \
	tests/unit/unit.h
tests_unit_test_lmdb_reader_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'
endif

UNIT_TESTS += tests/unit/test_storage_faults
tests_unit_test_storage_faults_SOURCES = tests/unit/test_storage_faults.c tests/unit/fault_fs.c tests/unit/mounts.h \
	tests/unit/fault_fs.h $(READER_SET)

UNIT_TESTS += tests/unit/test_image_faults
tests_unit_test_image_faults_SOURCES = tests/unit/test_image_faults.c tests/unit/fault_fs.c tests/unit/mounts.h \
	tests/unit/fault_fs.h tests/unit/unit.h
tests_unit_test_image_faults_CPPFLAGS = $(AM_CPPFLAGS) -DGOLDEN='"$(abs_srcdir)/tests/golden"'
tests_unit_test_image_faults_LDADD = $(UNIT_LIBS) -lz

UNIT_TESTS += tests/unit/test_rate

if HAVE_URING
UNIT_TESTS += tests/unit/test_ring_faults
tests_unit_test_ring_faults_SOURCES = tests/unit/test_ring_faults.c $(READER_SET)
tests_unit_test_ring_faults_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=uring_enter
endif

UNIT_TESTS += tests/unit/test_service

if HAVE_NVME
UNIT_TESTS += tests/unit/test_nvme
endif

if HAVE_NFS
UNIT_TESTS += tests/unit/test_store_nfs
tests_unit_test_store_nfs_SOURCES = tests/unit/test_store_nfs.c tests/unit/nfs_stand_in.c tests/unit/nfs_stand_in.h \
	tests/unit/manual_clock.c tests/unit/manual_clock.h tests/unit/session.h tests/unit/folder.h tests/unit/unit.h \
	tests/unit/allocations.h

UNIT_TESTS += tests/unit/test_nfs
tests_unit_test_nfs_SOURCES = tests/unit/test_nfs.c tests/unit/nfs_stand_in.c tests/unit/nfs_stand_in.h tests/unit/unit.h \
	tests/unit/allocations.h
endif
