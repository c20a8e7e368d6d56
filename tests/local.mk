# SPDX-License-Identifier: Apache-2.0
# Tests run in this order, several at a time: long ones that compute, beside those of ranks, which mostly wait; short ones
# fill the end.

# One unit test program per module: tests/unit/test_MODULE.c, linked against libiobench.a and
# cmocka. Each folder's programs are listed in tests/unit/FOLDER.mk, with their sources if these are others, and with what
# else they are linked against.
UNIT_LIBS = $(LIBIOBENCH_LIBS) $(CMOCKA_LIBS)
LDADD = $(UNIT_LIBS)
EXTRA_DIST += tests/unit/allocations.h tests/unit/backends.h tests/unit/decoding.h tests/unit/fault_fs.h \
	tests/unit/fixture.h tests/unit/folder.h tests/unit/session.h tests/unit/manual_clock.h \
	tests/unit/memory_reader.h tests/unit/mounts.h tests/unit/nfs_stand_in.h tests/unit/pictures.h \
	tests/unit/resize_reference.h \
	tests/unit/reader_set.h tests/unit/training.h tests/unit/unit.h tests/unit/wire.h tests/unit/worked.h
if HAVE_CMOCKA
UNIT_LONG =
UNIT_TESTS =
include tests/unit/base.mk
include tests/unit/dataset.mk
include tests/unit/readers.mk
include tests/unit/formats.mk
include tests/unit/shuffle.mk
include tests/unit/decode.mk
include tests/unit/fabric.mk
include tests/unit/trainer.mk
include tests/unit/telemetry.mk
include tests/unit/cachectl.mk
include tests/unit/checkpoint.mk
include tests/unit/pipeline.mk
include tests/unit/report.mk
include tests/unit/sizing.mk
check_PROGRAMS += $(UNIT_LONG) $(UNIT_TESTS)
TESTS += $(UNIT_LONG)
endif

include tests/cluster/local.mk
include tests/cuda/local.mk
include tests/hostile/local.mk

# Project rules, checked by scripts: tests/lint/*.sh. Each first proves that it detects a fault. Some read
# and judge all sources for long: in .ci/run once.
READING_LINTS = tests/lint/headers.sh tests/lint/format.sh tests/lint/shell.sh tests/lint/guard.sh
LINTS = tests/lint/layers.sh tests/lint/ops.sh tests/lint/plugins.sh tests/lint/ifdef.sh tests/lint/atomics.sh \
	tests/lint/quiet.sh tests/lint/help.sh tests/lint/licence.sh tests/lint/words.sh \
	tests/lint/files.sh tests/lint/architecture.sh tests/lint/circles.sh tests/lint/paths.sh \
	tests/lint/types.sh tests/lint/english.sh tests/lint/large.sh tests/lint/mounts.sh $(READING_LINTS)
TESTS += $(LINTS)
# By name: a tarball has also those that are not run.
EXTRA_DIST += $(LINTS) tests/lint/headers.sh tests/lint/format.sh tests/lint/shell.sh tests/lint/guard.sh
EXTRA_DIST += tests/lint/lint.sh tests/lint/guard.py tests/load.sh .ci/run .ci/twice
.PHONY: lint
#: lint        rules of the source, by tests/lint
lint: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(LINTS)'
include tests/liars/local.mk
include tests/stress/local.mk
include tests/fault/local.mk
include tests/cli/local.mk
include tests/golden/local.mk
include tests/fuzz/local.mk
include tests/mutants/local.mk
if HAVE_CMOCKA
TESTS += $(UNIT_TESTS)
endif

# ThreadSanitizer in a build of its own: queues, loader, readers, decoders, engine, trainer, telemetry. Without the libraries
# that bring threads of their own, which it does not see into. Kernels from 6.6 on need setarch for gcc before 14.
TSAN_UNITS = tests/unit/test_queue tests/unit/test_workers tests/unit/test_io_pool tests/unit/test_loader \
	tests/unit/test_engine_waits tests/unit/test_starved tests/unit/test_engine_sink tests/unit/test_wake
TSAN_RUNS = tests/cli/threads.sh
TSAN_WITHOUT = --without-cuda --without-mpi --without-dnnl --without-archive --without-verbs --without-dygraphs
.PHONY: tsan
#: tsan        ThreadSanitizer on what has threads, in a folder of its own
tsan:
	$(MKDIR_P) tsan && cd tsan && \
	{ test -f Makefile || $(abs_srcdir)/configure -q --enable-sanitizers=thread $(TSAN_WITHOUT) CC='$(CC)' CFLAGS='-O1 -g1'; } && \
	$(MAKE) iobench $(TSAN_UNITS) && \
	setarch -R $(MAKE) check-TESTS TESTS='$(TSAN_UNITS) $(TSAN_RUNS)' check_PROGRAMS='$(TSAN_UNITS)'

# By unit tests unless COVERAGE_TESTS names others. A command in its sandbox cannot write what it counted: what only
# tests/cli runs is not seen.
COVERAGE_TESTS = $(UNIT_TESTS) $(UNIT_LONG)
EXTRA_DIST += tests/coverage.sh
.PHONY: coverage
#: coverage    lines that the unit tests execute, by folder; COVERAGE_TESTS names some
coverage:
	$(MKDIR_P) coverage && cd coverage && \
	{ test -f Makefile || $(abs_srcdir)/configure -q --without-cuda CC='$(CC)' CFLAGS='-O0 --coverage'; } && \
	find . -name '*.gcda' -delete && $(MAKE) $(COVERAGE_TESTS) && \
	{ $(MAKE) -k check-TESTS TESTS='$(COVERAGE_TESTS)' check_PROGRAMS='$(COVERAGE_TESTS)' || :; } && \
	sh $(abs_srcdir)/tests/coverage.sh

# Threads that wait for others of OpenMP sleep: tests share the CPUs.
AM_TESTS_ENVIRONMENT = CC='$(CC)'; LINT_CFLAGS='$(AM_CFLAGS)'; OMP_WAIT_POLICY=passive; \
	PATH='$(TESTS_PATH)'$$PATH; export CC LINT_CFLAGS OMP_WAIT_POLICY PATH;
# Before each test's command; .ci/run sets a time limit.
LOG_COMPILER = $(TEST_WRAPPER)
EXTRA_DIST += tests/sameness/same.py

# clang-tidy 14, a minute a CPU and more: not a lint of every check.
.PHONY: tidy
#: tidy        clang-tidy on the program: no finding is left
tidy: config.h
	@printf '%s\n' -std=gnu17 $(DEFS) $(AM_CPPFLAGS) $(CPPFLAGS) $(CUDA_CPPFLAGS) $(AM_CFLAGS) >compile_flags.txt
	printf '%s\n' $(addprefix $(srcdir)/,$(filter %.c,$(MADE_FROM))) | \
		xargs -P "$$(nproc)" -n 8 clang-tidy --quiet --warnings-as-errors='*' -p .
CLEANFILES += compile_flags.txt
clean-local: clean-own-builds
.PHONY: clean-own-builds
clean-own-builds:
	rm -rf tsan coverage

.PHONY: format
#: format      lay out C as .clang-format says
format:
	cd $(srcdir) && . tests/lint/lint.sh && clang-format -i $$(sources '*.c' '*.h')
