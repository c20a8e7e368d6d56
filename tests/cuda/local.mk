# SPDX-License-Identifier: Apache-2.0
# The cuda backend without a device: with kernels built for the host and host memory in place of
# device memory (tests/cuda/emulated_runtime.c).
EXTRA_DIST += tests/cuda/loads.sh tests/cuda/loads.py tests/cuda/loads.list
EXTRA_DIST += tests/cuda/device.sh tests/cuda/emulated.sh tests/cuda/feed.sh tests/cuda/net.sh tests/cuda/nvjpeg.sh tests/cuda/ranks.sh tests/cuda/rehearsal.sh
if HAVE_CUDA
TESTS += tests/cuda/loads.sh
EMULATED_BINARIES =
EMULATED_TESTS =
EMULATED_DEVICE = tests/cuda/emulated.h tests/cuda/emulated_memory.c tests/cuda/emulated_runtime.c

# The backend and its device, compiled once for all tests without ThreadSanitizer.
EMULATED = tests/cuda/libemulated.a
tests_cuda_libemulated_a_SOURCES = $(CUDA_SOURCES) $(EMULATED_DEVICE)
tests_cuda_libemulated_a_CFLAGS = $(AM_CFLAGS) -fPIC

EMULATED_BINARIES += tests/cuda/emulated_net_p2p.so
tests_cuda_emulated_net_p2p_so_SOURCES = $(NET_P2P_SOURCES)
tests_cuda_emulated_net_p2p_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_cuda_emulated_net_p2p_so_LDFLAGS = $(SANITIZE) -shared
tests_cuda_emulated_net_p2p_so_LDADD = $(EMULATED)

EMULATED_BINARIES += tests/cuda/emulated.so
tests_cuda_emulated_so_SOURCES = tests/cuda/emulated_dnn.c
tests_cuda_emulated_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_cuda_emulated_so_LDFLAGS = $(SANITIZE) -shared
tests_cuda_emulated_so_LDADD = $(tests_cuda_libemulated_a_OBJECTS) $(EMULATED_OBJECTS) -lstdc++ -lm
tests_cuda_emulated_so_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS)

# The nvjpeg decoder, with libjpeg-turbo in place of nvJPEG.
EMULATED_BINARIES += tests/cuda/emulated_nvjpeg.so tests/cuda/libnvjpeg.so.13
tests_cuda_emulated_nvjpeg_so_SOURCES = $(NVJPEG_SOURCES)
tests_cuda_emulated_nvjpeg_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_cuda_emulated_nvjpeg_so_LDFLAGS = $(SANITIZE) -shared
tests_cuda_emulated_nvjpeg_so_LDADD = kernels/device_resize.emulated.o $(EMULATED) -lstdc++
tests_cuda_emulated_nvjpeg_so_DEPENDENCIES = $(EMULATED) kernels/device_resize.emulated.o
tests_cuda_libnvjpeg_so_13_SOURCES = tests/cuda/mock_nvjpeg.c
tests_cuda_libnvjpeg_so_13_CFLAGS = $(AM_CFLAGS) -fPIC
tests_cuda_libnvjpeg_so_13_LDFLAGS = $(SANITIZE) -shared -Wl,-soname,libnvjpeg.so.13
tests_cuda_libnvjpeg_so_13_LDADD = $(JPEG_LIBS)

# Ranks in host memory, with our own library in place of NCCL.
if HAVE_NCCL
EMULATED_BINARIES += tests/cuda/emulated_nccl.so
tests_cuda_emulated_nccl_so_SOURCES = trainer/cuda/nccl.c base/module_version.c tests/cuda/mock_nccl.c
tests_cuda_emulated_nccl_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_emulated_nccl_so_CFLAGS = $(AM_CFLAGS) -fPIC
# If the real NCCL is installed, it is loaded first.
tests_cuda_emulated_nccl_so_LDFLAGS = $(SANITIZE) -shared -Wl,-Bsymbolic
tests_cuda_emulated_nccl_so_LDADD = $(EMULATED) kernels/device_wire.emulated.o -lrt -lstdc++ -lm
tests_cuda_emulated_nccl_so_DEPENDENCIES = $(EMULATED) kernels/device_wire.emulated.o
EMULATED_TESTS += tests/cuda/ranks.sh

# A NCCL without ncclMemAlloc: under these names nobody has it.
EMULATED_BINARIES += tests/cuda/emulated_nccl_old.so
tests_cuda_emulated_nccl_old_so_SOURCES = $(tests_cuda_emulated_nccl_so_SOURCES)
tests_cuda_emulated_nccl_old_so_CPPFLAGS = $(tests_cuda_emulated_nccl_so_CPPFLAGS) -DIOBENCH_OLD_NCCL \
	-DncclMemAlloc=ncclMemAlloc_of_later -DncclMemFree=ncclMemFree_of_later
tests_cuda_emulated_nccl_old_so_CFLAGS = $(tests_cuda_emulated_nccl_so_CFLAGS)
tests_cuda_emulated_nccl_old_so_LDFLAGS = $(tests_cuda_emulated_nccl_so_LDFLAGS)
tests_cuda_emulated_nccl_old_so_LDADD = $(tests_cuda_emulated_nccl_so_LDADD)
tests_cuda_emulated_nccl_old_so_DEPENDENCIES = $(tests_cuda_emulated_nccl_so_DEPENDENCIES)

EMULATED_BINARIES += tests/cuda/emulated_net_nccl.so
tests_cuda_emulated_net_nccl_so_SOURCES = $(NET_NCCL_SOURCES) tests/cuda/mock_nccl.c
tests_cuda_emulated_net_nccl_so_CPPFLAGS = $(tests_cuda_emulated_nccl_so_CPPFLAGS)
tests_cuda_emulated_net_nccl_so_CFLAGS = $(tests_cuda_emulated_nccl_so_CFLAGS)
tests_cuda_emulated_net_nccl_so_LDFLAGS = $(tests_cuda_emulated_nccl_so_LDFLAGS)
tests_cuda_emulated_net_nccl_so_LDADD = $(EMULATED) -lrt
EMULATED_TESTS += tests/cuda/net.sh
endif

if HAVE_CMOCKA
# The tests of the cpu backend, applied to this one.
EMULATED_BINARIES += tests/cuda/test_cuda
tests_cuda_test_cuda_SOURCES = tests/unit/test_cpu.c tests/unit/unit.h
tests_cuda_test_cuda_CPPFLAGS = $(AM_CPPFLAGS) -DBACKEND='"cuda:fp32,deterministic=yes,plans=none,tournament=1"'
tests_cuda_test_cuda_LDADD = $(MODULE_HOST_LIBS) $(CMOCKA_LIBS)
EMULATED_TESTS += tests/cuda/device.sh tests/cuda/emulated.sh tests/cuda/feed.sh tests/cuda/nvjpeg.sh tests/cuda/rehearsal.sh
EMULATED_BINARIES += tests/cuda/test_nvjpeg
tests_cuda_test_nvjpeg_SOURCES = tests/cuda/test_nvjpeg.c tests/unit/decoding.h tests/unit/fixture.h tests/unit/unit.h
tests_cuda_test_nvjpeg_LDADD = $(UNIT_LIBS)

EMULATED_BINARIES += tests/cuda/test_input
tests_cuda_test_input_SOURCES = tests/cuda/test_input.c tests/unit/unit.h
tests_cuda_test_input_LDADD = $(UNIT_LIBS)

# All of it under ThreadSanitizer, which reports accesses that no event or wait orders.
if HAS_TSAN
EMULATED_BINARIES += tests/cuda/ordered.so tests/cuda/test_order
EMULATED_TESTS += tests/cuda/test_order
tests_cuda_ordered_so_SOURCES = $(CUDA_SOURCES) $(EMULATED_DEVICE) tests/cuda/emulated_dnn.c
tests_cuda_ordered_so_CFLAGS = $(AM_CFLAGS) -fPIC -fsanitize=thread
tests_cuda_ordered_so_LDFLAGS = -shared -fsanitize=thread
tests_cuda_ordered_so_LDADD = $(ORDERED_OBJECTS) -lstdc++ -lm
tests_cuda_ordered_so_DEPENDENCIES = $(ORDERED_OBJECTS)
tests_cuda_test_order_SOURCES = tests/cuda/test_order.c tests/unit/unit.h
tests_cuda_test_order_CFLAGS = $(AM_CFLAGS) -fsanitize=thread
tests_cuda_test_order_LDADD = $(UNIT_LIBS)
EMULATED_BINARIES += tests/cuda/ordered_nvjpeg.so tests/cuda/test_order_nvjpeg
EMULATED_TESTS += tests/cuda/test_order_nvjpeg
tests_cuda_ordered_nvjpeg_so_SOURCES = $(NVJPEG_SOURCES) $(EMULATED_DEVICE)
tests_cuda_ordered_nvjpeg_so_CFLAGS = $(tests_cuda_ordered_so_CFLAGS)
tests_cuda_ordered_nvjpeg_so_LDFLAGS = $(tests_cuda_ordered_so_LDFLAGS)
tests_cuda_ordered_nvjpeg_so_LDADD = kernels/device_resize.ordered.o -lstdc++
tests_cuda_ordered_nvjpeg_so_DEPENDENCIES = kernels/device_resize.ordered.o
tests_cuda_test_order_nvjpeg_SOURCES = $(tests_cuda_test_nvjpeg_SOURCES)
tests_cuda_test_order_nvjpeg_CPPFLAGS = $(AM_CPPFLAGS) -DMODULE='"tests/cuda/ordered_nvjpeg.so"'
tests_cuda_test_order_nvjpeg_CFLAGS = $(tests_cuda_test_order_CFLAGS)
tests_cuda_test_order_nvjpeg_LDADD = $(UNIT_LIBS)
if HAVE_NCCL
EMULATED_BINARIES += tests/cuda/ordered_nccl.so
tests_cuda_ordered_nccl_so_SOURCES = $(tests_cuda_emulated_nccl_so_SOURCES) $(EMULATED_DEVICE)
tests_cuda_ordered_nccl_so_CPPFLAGS = $(tests_cuda_emulated_nccl_so_CPPFLAGS)
tests_cuda_ordered_nccl_so_CFLAGS = $(tests_cuda_ordered_so_CFLAGS)
tests_cuda_ordered_nccl_so_LDFLAGS = $(tests_cuda_ordered_so_LDFLAGS) -Wl,-Bsymbolic
tests_cuda_ordered_nccl_so_LDADD = kernels/device_wire.ordered.o -lrt -lstdc++ -lm
tests_cuda_ordered_nccl_so_DEPENDENCIES = kernels/device_wire.ordered.o
endif
endif

# Kernels against kernels/kernels.h: always on the host, and on a device if present.
CUDA_KERNEL_TEST = tests/cuda/test_device.c tests/cuda/half.h tests/cuda/place.h tests/unit/unit.h
EMULATED_BINARIES += tests/cuda/test_emulated_kernels
check_PROGRAMS += tests/cuda/test_device_kernels
EMULATED_TESTS += tests/cuda/test_emulated_kernels
TESTS += tests/cuda/test_device_kernels
tests_cuda_test_emulated_kernels_SOURCES = $(CUDA_KERNEL_TEST)
tests_cuda_test_emulated_kernels_LDADD = $(EMULATED) $(EMULATED_OBJECTS) $(UNIT_LIBS) -lstdc++
tests_cuda_test_emulated_kernels_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS) libiobench.a
tests_cuda_test_device_kernels_SOURCES = $(CUDA_KERNEL_TEST) kernels/runtime.c
tests_cuda_test_device_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_device_kernels_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
tests_cuda_test_device_kernels_LDADD = $(CUDA_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_device_kernels_DEPENDENCIES = $(CUDA_OBJECTS) libiobench.a

EMULATED_BINARIES += tests/cuda/test_emulated_magnitudes
check_PROGRAMS += tests/cuda/test_device_magnitudes
EMULATED_TESTS += tests/cuda/test_emulated_magnitudes
TESTS += tests/cuda/test_device_magnitudes
CUDA_MAGNITUDES_TEST = tests/cuda/test_magnitudes.c tests/cuda/half.h tests/cuda/place.h tests/unit/unit.h
tests_cuda_test_emulated_magnitudes_SOURCES = $(CUDA_MAGNITUDES_TEST)
tests_cuda_test_emulated_magnitudes_LDADD = $(EMULATED) $(EMULATED_OBJECTS) $(UNIT_LIBS) -lstdc++
tests_cuda_test_emulated_magnitudes_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS) libiobench.a
tests_cuda_test_device_magnitudes_SOURCES = $(CUDA_MAGNITUDES_TEST) kernels/runtime.c
tests_cuda_test_device_magnitudes_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_device_magnitudes_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
tests_cuda_test_device_magnitudes_LDADD = $(CUDA_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_device_magnitudes_DEPENDENCIES = $(CUDA_OBJECTS) libiobench.a

EMULATED_BINARIES += tests/cuda/test_emulated_optimise
check_PROGRAMS += tests/cuda/test_device_optimise
EMULATED_TESTS += tests/cuda/test_emulated_optimise
TESTS += tests/cuda/test_device_optimise
CUDA_OPTIMISE_TEST = tests/cuda/test_optimise.c tests/cuda/half.h tests/cuda/place.h tests/unit/unit.h
tests_cuda_test_emulated_optimise_SOURCES = $(CUDA_OPTIMISE_TEST)
tests_cuda_test_emulated_optimise_LDADD = $(EMULATED) $(EMULATED_OBJECTS) $(UNIT_LIBS) -lstdc++
tests_cuda_test_emulated_optimise_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS) libiobench.a
tests_cuda_test_device_optimise_SOURCES = $(CUDA_OPTIMISE_TEST) kernels/runtime.c
tests_cuda_test_device_optimise_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_device_optimise_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
tests_cuda_test_device_optimise_LDADD = $(CUDA_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_device_optimise_DEPENDENCIES = $(CUDA_OBJECTS) libiobench.a

# The resize of decoded images against the CPU's, likewise.
CUDA_RESIZE_TEST = tests/cuda/test_resize.c tests/cuda/half.h tests/cuda/place.h tests/unit/unit.h
EMULATED_BINARIES += tests/cuda/test_resize
check_PROGRAMS += tests/cuda/test_device_resize
EMULATED_TESTS += tests/cuda/test_resize
TESTS += tests/cuda/test_device_resize
tests_cuda_test_resize_SOURCES = $(CUDA_RESIZE_TEST)
tests_cuda_test_resize_LDADD = $(EMULATED) $(EMULATED_OBJECTS) $(UNIT_LIBS) -lstdc++
tests_cuda_test_resize_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS) libiobench.a
tests_cuda_test_device_resize_SOURCES = $(CUDA_RESIZE_TEST) kernels/runtime.c
tests_cuda_test_device_resize_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_device_resize_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
tests_cuda_test_device_resize_LDADD = $(CUDA_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_device_resize_DEPENDENCIES = $(CUDA_OBJECTS) libiobench.a

# Results of fused plans against kernels/kernels.h, likewise on both.
CUDA_FUSED_TEST = tests/cuda/test_fused.c tests/cuda/half.h tests/cuda/place.h tests/unit/unit.h
EMULATED_BINARIES += tests/cuda/test_emulated_fused
check_PROGRAMS += tests/cuda/test_device_fused
EMULATED_TESTS += tests/cuda/test_emulated_fused
TESTS += tests/cuda/test_device_fused
tests_cuda_test_emulated_fused_SOURCES = $(CUDA_FUSED_TEST) tests/cuda/emulated_dnn.c
tests_cuda_test_emulated_fused_LDADD = $(EMULATED) $(EMULATED_OBJECTS) $(UNIT_LIBS) -lstdc++
tests_cuda_test_emulated_fused_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS) libiobench.a
tests_cuda_test_device_fused_SOURCES = $(CUDA_FUSED_TEST) kernels/runtime.c $(DNN_CHECKED) $(DNN_SOURCES)
tests_cuda_test_device_fused_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_device_fused_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
tests_cuda_test_device_fused_LDADD = $(CUDA_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_device_fused_DEPENDENCIES = $(CUDA_OBJECTS) libiobench.a

# The check of engines, likewise.
CUDA_TRIAL_TEST = tests/cuda/test_trial.c tests/cuda/half.h tests/cuda/place.h tests/unit/unit.h
EMULATED_BINARIES += tests/cuda/test_trial
check_PROGRAMS += tests/cuda/test_device_trial
EMULATED_TESTS += tests/cuda/test_trial
TESTS += tests/cuda/test_device_trial
tests_cuda_test_trial_SOURCES = $(CUDA_TRIAL_TEST) tests/cuda/emulated_dnn.c
tests_cuda_test_trial_LDADD = $(EMULATED) $(EMULATED_OBJECTS) $(UNIT_LIBS) -lstdc++
tests_cuda_test_trial_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS) libiobench.a
tests_cuda_test_device_trial_SOURCES = $(CUDA_TRIAL_TEST) kernels/runtime.c $(DNN_CHECKED) $(DNN_SOURCES)
tests_cuda_test_device_trial_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_device_trial_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
tests_cuda_test_device_trial_LDADD = $(CUDA_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_device_trial_DEPENDENCIES = $(CUDA_OBJECTS) libiobench.a

# The plan file, shared by jobs on one host.
check_PROGRAMS += tests/cuda/test_choices
TESTS += tests/cuda/test_choices
tests_cuda_test_choices_SOURCES = tests/cuda/test_choices.c trainer/cuda/dnn_choices.c \
	tests/unit/folder.h tests/unit/unit.h
tests_cuda_test_choices_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_choices_LDADD = $(UNIT_LIBS)

# Plans of all networks for described devices, without hardware.
EMULATED_BINARIES += tests/cuda/test_plans
EMULATED_TESTS += tests/cuda/test_plans
tests_cuda_test_plans_SOURCES = tests/cuda/test_plans.c $(DNN_SOURCES) tests/unit/folder.h tests/unit/unit.h
tests_cuda_test_plans_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_plans_LDADD = $(EMULATED) $(EMULATED_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_plans_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS) libiobench.a

# What cuDNN fuses, for the same devices.
EMULATED_BINARIES += tests/cuda/test_fusions
EMULATED_TESTS += tests/cuda/test_fusions
tests_cuda_test_fusions_SOURCES = tests/cuda/test_fusions.c $(DNN_SOURCES) tests/unit/unit.h
tests_cuda_test_fusions_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_fusions_LDADD = $(EMULATED) $(EMULATED_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_fusions_DEPENDENCIES = $(EMULATED) $(EMULATED_OBJECTS) libiobench.a
endif

if EMULATED_GPU
check_LIBRARIES += $(EMULATED)
check_PROGRAMS += $(EMULATED_BINARIES)
TESTS += $(EMULATED_TESTS)
else
EXTRA_LIBRARIES += $(EMULATED)
EXTRA_PROGRAMS += $(EMULATED_BINARIES)
endif
endif
