# SPDX-License-Identifier: Apache-2.0
# Failing storage, with tools from the machine; skipped if they are missing.
FAULT_TESTS = tests/fault/cachectl.sh tests/fault/descriptors.sh tests/fault/refused.sh tests/fault/nfs.sh tests/fault/nfs_data.sh
TESTS += $(FAULT_TESTS)
EXTRA_DIST += $(FAULT_TESTS) tests/fault/server.sh
check_PROGRAMS += tests/fault/nfs_reads
tests_fault_nfs_reads_SOURCES = tests/fault/nfs_reads.c
tests_fault_nfs_reads_LDADD = $(LIBIOBENCH_LIBS)

# Calls fail one by one: tests/fault/sweep.sh, a sample by default.
TESTS += tests/fault/sweep.sh
EXTRA_DIST += tests/fault/sweep.sh
check_PROGRAMS += tests/fault/faults.so tests/fault/sweep
tests_fault_faults_so_SOURCES = tests/fault/faults.c
tests_fault_faults_so_LDADD =
tests_fault_faults_so_CFLAGS = $(WARNINGS) -pthread -fPIC
tests_fault_faults_so_LDFLAGS = -shared
tests_fault_sweep_SOURCES = tests/fault/sweep.c tests/hostile/hostile.h tests/hostile/command.c \
	tests/hostile/tree.c tests/hostile/make.c
tests_fault_sweep_LDADD = $(LIBIOBENCH_LIBS)
