# SPDX-License-Identifier: Apache-2.0
# Several ranks, and several hosts where network namespaces may be made.
CLUSTER_TESTS = tests/cluster/hosts.sh tests/cluster/ranks.sh tests/cluster/silence.sh
TESTS += $(CLUSTER_TESTS)
EXTRA_DIST += $(CLUSTER_TESTS) tests/cluster/cluster.sh

if HAVE_MPI
check_PROGRAMS += tests/cluster/ranks
tests_cluster_ranks_SOURCES = tests/cluster/ranks.c
tests_cluster_ranks_LDADD = $(LIBIOBENCH_LIBS)
endif

include tests/cluster/bed/local.mk
