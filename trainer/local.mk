# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	trainer/backend.c trainer/backend.h \
	trainer/graph.c trainer/graph.h \
	trainer/networks.c \
	trainer/trainer.c trainer/trainer.h \
	trainer/plugins.h trainer/backend_registry.c trainer/registry.c \
	trainer/accelerator.c trainer/accelerator.h \
	trainer/quantise.c trainer/quantise.h \
	trainer/backend_reference.c \
	trainer/profile.h trainer/replay.c trainer/settings.h \
	trainer/exchange.c trainer/exchange.h \
	trainer/training.c trainer/training.h \
	trainer/weights.c trainer/weights.h

# The objects of the module: programs that cannot load it link them (CPU_LIBS).
if HAVE_DNNL
libiobench_a_SOURCES += trainer/backend_cpu.c
noinst_LIBRARIES += trainer/libcpu.a
trainer_libcpu_a_SOURCES = trainer/cpu/backend.c trainer/cpu/build.c trainer/cpu/cpu.h trainer/cpu/dnnl.c \
	trainer/cpu/dnnl.h trainer/cpu/schedule.c
trainer_libcpu_a_CFLAGS = $(AM_CFLAGS) -fPIC
CPU_LIBS = $(TAKE_CPU) trainer/libcpu.a $(DNNL_LIBS)
module_PROGRAMS += iobench-cpu.so
iobench_cpu_so_SOURCES = base/module_version.c
iobench_cpu_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_cpu_so_LDFLAGS = $(SANITIZE) -shared
iobench_cpu_so_LDADD = $(CPU_LIBS)
endif

if HAVE_NCCL
libiobench_a_SOURCES += trainer/exchange_nccl.c
module_PROGRAMS += iobench-nccl.so
iobench_nccl_so_SOURCES = trainer/cuda/nccl.c base/module_version.c \
	kernels/runtime.c kernels/runtime.h
iobench_nccl_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
iobench_nccl_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_nccl_so_LDFLAGS = $(SANITIZE) -shared
iobench_nccl_so_LDADD = kernels/device_wire.nvcc.o $(NCCL_LIBS) $(CUDA_LIBS)
iobench_nccl_so_DEPENDENCIES = kernels/device_wire.nvcc.o
endif

if HAVE_CUDA
libiobench_a_SOURCES += trainer/backend_cuda.c
CUDA_SOURCES = base/module_version.c trainer/cuda/blocks.c trainer/cuda/blocks.h trainer/cuda/build.c trainer/cuda/cuda.c $(DNN_CHECKED) \
	trainer/cuda/model.c trainer/cuda/model.h trainer/cuda/p2p.c trainer/cuda/program.c trainer/cuda/program.h
# Without cuDNN: shapes, and the check of what computes them.
DNN_CHECKED = trainer/cuda/dnn_trial.c trainer/cuda/dnn_trial.h
DNN_SOURCES = trainer/cuda/dnn.c trainer/cuda/dnn.h trainer/cuda/dnn_choices.c
module_PROGRAMS += iobench-cuda.so
iobench_cuda_so_SOURCES = $(CUDA_SOURCES) kernels/runtime.c kernels/runtime.h \
	$(DNN_SOURCES)
iobench_cuda_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
iobench_cuda_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_cuda_so_LDFLAGS = $(SANITIZE) -shared
iobench_cuda_so_LDADD = $(CUDA_OBJECTS) $(JANSSON_LIBS) $(CUDA_LIBS)
iobench_cuda_so_DEPENDENCIES = $(CUDA_OBJECTS)
endif
