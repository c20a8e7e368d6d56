# SPDX-License-Identifier: Apache-2.0
# Hostile data sets, results, job files and targets x all commands. `tests/hostile/hostile` lists
# them; IOBENCH_LONG=1 runs all.
HOSTILE_TESTS = tests/hostile/records.sh tests/hostile/lmdb.sh tests/hostile/tar.sh \
	tests/hostile/trees.sh tests/hostile/images.sh tests/hostile/sidecars.sh \
	tests/hostile/outputs.sh tests/hostile/targets.sh
TESTS += $(HOSTILE_TESTS)
EXTRA_DIST += $(HOSTILE_TESTS)
check_PROGRAMS += tests/hostile/hostile
tests_hostile_hostile_SOURCES = tests/hostile/hostile.h tests/unit/mounts.h tests/hostile/main.c \
	tests/hostile/command.c tests/hostile/tree.c tests/hostile/make.c \
	tests/hostile/sets_records.c tests/hostile/sets_lmdb.c tests/hostile/sets_tar.c \
	tests/hostile/sets_trees.c tests/hostile/sets_images.c tests/hostile/sets_sidecars.c \
	tests/hostile/sets_outputs.c tests/hostile/sets_targets.c
tests_hostile_hostile_LDADD = $(LIBIOBENCH_LIBS)
