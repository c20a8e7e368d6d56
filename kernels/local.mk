# SPDX-License-Identifier: Apache-2.0
# Reference kernels of the trainer's operations; also compiled in double for their unit test.
KERNELS = kernels/kernels.c kernels/kernels.h
libiobench_a_SOURCES += $(KERNELS) kernels/resize.c kernels/resize.h

# The same for a device. Each source is built twice: by nvcc for the modules, and for the host by the
# C++ compiler, for the tests (kernels/launch.cuh).
CUDA_KERNELS = kernels/device.cu kernels/device_resize.cu kernels/device_wire.cu
CUDA_PARTS = kernels/device_convolution.cu kernels/device_ends.cu \
	kernels/device_magnitudes.cu kernels/device_norm.cu kernels/device_optimise.cu kernels/device_pointwise.cu \
	kernels/device_pool.cu
CUDA_INCLUDED = kernels/device.h kernels/kernels.h kernels/launch.cuh
EXTRA_DIST += $(CUDA_KERNELS) $(CUDA_PARTS) $(CUDA_INCLUDED)
if HAVE_CUDA
CUDA_OBJECTS = $(CUDA_KERNELS:.cu=.nvcc.o)
EMULATED_OBJECTS = $(CUDA_KERNELS:.cu=.emulated.o)
ORDERED_OBJECTS = $(CUDA_KERNELS:.cu=.ordered.o)
kernels/device.nvcc.o kernels/device.emulated.o kernels/device.ordered.o: $(CUDA_PARTS:%=$(srcdir)/%)
CLEANFILES += $(CUDA_OBJECTS) $(EMULATED_OBJECTS) $(ORDERED_OBJECTS)
# C++20 warns of two enums in one expression, which C does not.
ENUM_FLAGS = -Wno-deprecated-enum-enum-conversion -Wno-deprecated-enum-float-conversion
NVCC_FLAGS = -std=c++20 -O3 --threads 2 $(NVCC_ARCHS) -ccbin $(CUDA_CXX) -Xcompiler "-Wall -fPIC $(ENUM_FLAGS)"
# Only the used part of each source row is read.
EMULATED_FLAGS = -std=gnu++20 $(CFLAGS) -Wall -Wextra $(ENUM_FLAGS) -Wno-maybe-uninitialized -fPIC $(SANITIZE) $(CUDA_CPPFLAGS) \
	-DKERNELS_EMULATED

kernels/%.nvcc.o: $(srcdir)/kernels/%.cu $(CUDA_INCLUDED:%=$(srcdir)/%) kernels/$(am__dirstamp)
	$(AM_V_GEN)$(NVCC) $(NVCC_FLAGS) -I$(srcdir) -c $< -o $@
kernels/%.emulated.o: $(srcdir)/kernels/%.cu $(CUDA_INCLUDED:%=$(srcdir)/%) kernels/$(am__dirstamp)
	$(AM_V_GEN)$(CUDA_CXX) $(EMULATED_FLAGS) -I$(srcdir) -x c++ -c $< -o $@
kernels/%.ordered.o: $(srcdir)/kernels/%.cu $(CUDA_INCLUDED:%=$(srcdir)/%) kernels/$(am__dirstamp)
	$(AM_V_GEN)$(CUDA_CXX) $(EMULATED_FLAGS) -O1 -fsanitize=thread -I$(srcdir) -x c++ -c $< -o $@
endif
