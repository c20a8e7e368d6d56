# SPDX-License-Identifier: Apache-2.0
# Device kernels without a device: built for the host, whose memory stands in for the device's
# (tests/cuda/emulated_runtime.c).
if HAVE_CUDA
if HAVE_CMOCKA
# Kernels against kernels/kernels.h: on the host always, on a device where there is one.
CUDA_KERNEL_TEST = tests/cuda/test_device.c tests/cuda/place.h tests/unit/unit.h
check_PROGRAMS += tests/cuda/test_emulated_kernels tests/cuda/test_device_kernels
TESTS += tests/cuda/test_emulated_kernels tests/cuda/test_device_kernels
tests_cuda_test_emulated_kernels_SOURCES = $(CUDA_KERNEL_TEST) tests/cuda/emulated_runtime.c
tests_cuda_test_emulated_kernels_LDADD = $(EMULATED_OBJECTS) $(UNIT_LIBS) -lstdc++
tests_cuda_test_emulated_kernels_DEPENDENCIES = $(EMULATED_OBJECTS) libiobench.a
tests_cuda_test_device_kernels_SOURCES = $(CUDA_KERNEL_TEST) trainer/cuda/runtime.c
tests_cuda_test_device_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cuda_test_device_kernels_LDADD = $(CUDA_OBJECTS) $(UNIT_LIBS) $(CUDA_LIBS)
tests_cuda_test_device_kernels_DEPENDENCIES = $(CUDA_OBJECTS) libiobench.a
endif
endif
