# SPDX-License-Identifier: Apache-2.0
# Several ranks, and several hosts if network namespaces are permitted.
CLUSTER_TESTS = tests/cluster/checkpoint.sh tests/cluster/hosts.sh tests/cluster/jobs.sh tests/cluster/mpi.sh tests/cluster/net.sh tests/cluster/net_beside.sh tests/cluster/net_hosts.sh tests/cluster/net_verbs.sh tests/cluster/ranks.sh \
	tests/cluster/silence.sh tests/cluster/steps.sh
CLUSTER_TESTS += tests/cluster/killed.sh tests/cluster/launch.sh tests/cluster/slurm.sh tests/cluster/ssh.sh
TESTS += $(CLUSTER_TESTS)
EXTRA_DIST += $(CLUSTER_TESTS) tests/cluster/cluster.sh

if HAVE_MPI
check_PROGRAMS += tests/cluster/alive tests/cluster/ranks tests/cluster/steps
tests_cluster_alive_SOURCES = tests/cluster/alive.c
tests_cluster_alive_LDADD = $(MPI_RANKS_LIBS) $(LIBIOBENCH_LIBS)
tests_cluster_ranks_SOURCES = tests/cluster/ranks.c
tests_cluster_ranks_LDADD = $(MPI_RANKS_LIBS) $(CPU_LIBS) $(MODULE_HOST_LIBS)
tests_cluster_steps_SOURCES = tests/cluster/steps.c
tests_cluster_steps_LDADD = $(MPI_RANKS_LIBS) $(LIBIOBENCH_LIBS)
endif

# The verbs transport with our own library in place of libibverbs.
if HAVE_VERBS
check_PROGRAMS += tests/cluster/emulated_verbs.so
tests_cluster_emulated_verbs_so_SOURCES = $(VERBS_SOURCES) tests/cluster/emulated_verbs.c
tests_cluster_emulated_verbs_so_LDADD =
tests_cluster_emulated_verbs_so_CPPFLAGS = $(iobench_verbs_so_CPPFLAGS)
tests_cluster_emulated_verbs_so_CFLAGS = $(iobench_verbs_so_CFLAGS)
# If the real libibverbs is installed, it is loaded first.
tests_cluster_emulated_verbs_so_LDFLAGS = $(iobench_verbs_so_LDFLAGS) -Wl,-Bsymbolic
endif

include tests/cluster/bed/local.mk
