# SPDX-License-Identifier: Apache-2.0
# Storage that fails, with the tools of the machine: skipped where they are missing.
FAULT_TESTS = tests/fault/refused.sh tests/fault/nfs.sh tests/fault/nfs_data.sh
TESTS += $(FAULT_TESTS)
EXTRA_DIST += $(FAULT_TESTS) tests/fault/server.sh
check_PROGRAMS += tests/fault/nfs_reads
tests_fault_nfs_reads_SOURCES = tests/fault/nfs_reads.c
tests_fault_nfs_reads_LDADD = $(LIBIOBENCH_LIBS)
