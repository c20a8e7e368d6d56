# SPDX-License-Identifier: Apache-2.0
# What is right for the trainer's operations; compiled once more in double for their unit test.
KERNELS = \
	kernels/batch_norm.c kernels/convolution.c kernels/fully_connected.c kernels/loss.c \
	kernels/lrn.c kernels/matrix.c kernels/optimise.c kernels/pointwise.c kernels/pool.c \
	kernels/kernels.h
libiobench_a_SOURCES += $(KERNELS) \
	kernels/resize.c kernels/resize.h
