# SPDX-License-Identifier: Apache-2.0

UNIT_TESTS += tests/unit/test_replay
tests_unit_test_replay_SOURCES = tests/unit/test_replay.c tests/unit/manual_clock.c \
	tests/unit/manual_clock.h tests/unit/unit.h

UNIT_TESTS += tests/unit/test_buckets
UNIT_TESTS += tests/unit/test_weights

UNIT_LONG += tests/unit/test_networks
tests_unit_test_networks_SOURCES = tests/unit/test_networks.c tests/unit/golden.h tests/unit/unit.h

# The kernels compiled in double; the library's own are not linked.
UNIT_TESTS += tests/unit/test_kernels
tests_unit_test_kernels_SOURCES = tests/unit/test_kernels.c tests/unit/unit.h $(KERNELS)
tests_unit_test_kernels_CPPFLAGS = $(AM_CPPFLAGS) -DKERNELS_DOUBLE

UNIT_TESTS += tests/unit/test_lifetimes

UNIT_TESTS += tests/unit/test_quantise
tests_unit_test_quantise_SOURCES = tests/unit/test_quantise.c tests/unit/training.h tests/unit/unit.h
tests_unit_test_quantise_LDADD = $(CPU_LIBS) $(MODULE_HOST_LIBS) $(CMOCKA_LIBS)

if HAVE_DNNL
UNIT_TESTS += tests/unit/test_cpu
tests_unit_test_cpu_SOURCES = tests/unit/test_cpu.c tests/unit/unit.h
tests_unit_test_cpu_LDADD = $(CPU_LIBS) $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_bf16
tests_unit_test_bf16_SOURCES = tests/unit/test_bf16.c tests/unit/training.h tests/unit/unit.h
tests_unit_test_bf16_LDADD = $(CPU_LIBS) $(UNIT_LIBS)

UNIT_LONG += tests/unit/test_learning
tests_unit_test_learning_SOURCES = tests/unit/test_learning.c \
	tests/unit/training.h tests/unit/unit.h
tests_unit_test_learning_LDADD = $(CPU_LIBS) $(UNIT_LIBS)
endif

# These test every backend in the build.
UNIT_TESTS += tests/unit/test_backend
tests_unit_test_backend_SOURCES = tests/unit/test_backend.c tests/unit/backend_updates.c \
	tests/unit/backends.h tests/unit/allocations.h \
	tests/unit/training.h tests/unit/unit.h
tests_unit_test_backend_LDADD = $(CPU_LIBS) $(MODULE_HOST_LIBS) $(CMOCKA_LIBS)

UNIT_LONG += tests/unit/test_trainer_golden
tests_unit_test_trainer_golden_SOURCES = tests/unit/test_trainer_golden.c \
	tests/unit/training.h tests/unit/unit.h
tests_unit_test_trainer_golden_LDADD = $(CPU_LIBS) $(MODULE_HOST_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_overfit
tests_unit_test_overfit_SOURCES = tests/unit/test_overfit.c \
	tests/unit/training.h tests/unit/unit.h
tests_unit_test_overfit_LDADD = $(CPU_LIBS) $(MODULE_HOST_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += tests/unit/test_recipe
