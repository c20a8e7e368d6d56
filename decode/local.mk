# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	decode/decoder.c decode/decoder.h \
	decode/plugins.h decode/registry.c \
	decode/view.c decode/view.h \
	decode/image.c decode/image.h decode/jpeg.c decode/png.c
if HAVE_WEBP
libiobench_a_SOURCES += decode/webp.c
endif
libiobench_a_SOURCES += \
	decode/baseline/baseline.c decode/baseline/baseline.h \
	decode/baseline/entropy.h decode/baseline/entropy_template.h \
	decode/baseline/huffman.c decode/baseline/idct.c decode/baseline/idct_template.h \
	decode/baseline/kernels.c decode/baseline/kernels.h decode/baseline/kernels_template.h \
	decode/baseline/kernels_avx2.c decode/baseline/kernels_avx512.c decode/baseline/kernels_neon.c \
	decode/baseline/markers.c decode/baseline/markers.h
EXTRA_DIST += decode/baseline/README.md

if HAVE_CUDA
libiobench_a_SOURCES += decode/nvjpeg.c
NVJPEG_SOURCES = decode/cuda/nvjpeg.c base/module_version.c
module_PROGRAMS += iobench-nvjpeg.so
iobench_nvjpeg_so_SOURCES = $(NVJPEG_SOURCES) kernels/runtime.c kernels/runtime.h
iobench_nvjpeg_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
iobench_nvjpeg_so_CFLAGS = $(AM_CFLAGS) -fPIC
# Does not need cuDNN.
iobench_nvjpeg_so_LDFLAGS = $(SANITIZE) -shared -Wl,--as-needed
iobench_nvjpeg_so_LDADD = kernels/device_resize.nvcc.o $(CUDA_LIBS)
iobench_nvjpeg_so_DEPENDENCIES = kernels/device_resize.nvcc.o
endif
