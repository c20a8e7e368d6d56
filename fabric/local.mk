# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	fabric/collective.c fabric/collective.h \
	fabric/matrix.c fabric/matrix.h \
	fabric/measure.c fabric/measure.h \
	fabric/pattern.c fabric/pattern.h \
	fabric/plugins.h fabric/registry.c \
	fabric/rhythm.c fabric/rhythm.h \
	fabric/survey.c fabric/survey.h \
	fabric/tcp.c fabric/tcp.h fabric/tcp_connect.c fabric/tcp_plain.c fabric/tcp_registry.c \
	fabric/transport.c fabric/transport.h

if HAVE_MPI
libiobench_a_SOURCES += fabric/mpi.c
endif

if HAVE_URING
libiobench_a_SOURCES += fabric/tcp_uring.c
endif

if HAVE_VERBS
libiobench_a_SOURCES += fabric/verbs.c fabric/verbs_settings.h
VERBS_SOURCES = fabric/verbs/connect.c fabric/verbs/device.c fabric/verbs/move.c \
	fabric/verbs/verbs.c fabric/verbs/verbs.h
module_PROGRAMS += iobench-verbs.so
iobench_verbs_so_SOURCES = $(VERBS_SOURCES)
iobench_verbs_so_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
iobench_verbs_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_verbs_so_LDFLAGS = $(SANITIZE) -shared
iobench_verbs_so_LDADD = $(VERBS_LIBS)
endif

# Between GPUs.
if HAVE_CUDA
libiobench_a_SOURCES += fabric/gpu.c fabric/gpu_settings.h
NET_P2P_SOURCES = fabric/cuda/arena.c fabric/cuda/arena.h fabric/cuda/p2p.c
module_PROGRAMS += iobench-net-p2p.so
iobench_net_p2p_so_SOURCES = $(NET_P2P_SOURCES) kernels/runtime.c kernels/runtime.h
iobench_net_p2p_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
iobench_net_p2p_so_CFLAGS = $(AM_CFLAGS) -fPIC
# Only what it uses: not cuDNN.
iobench_net_p2p_so_LDFLAGS = $(SANITIZE) -shared -Wl,--as-needed
iobench_net_p2p_so_LDADD = $(CUDA_LIBS)
endif

if HAVE_NCCL
libiobench_a_SOURCES += fabric/gpu_nccl.c
NET_NCCL_SOURCES = fabric/cuda/arena.c fabric/cuda/arena.h fabric/cuda/nccl.c
module_PROGRAMS += iobench-net-nccl.so
iobench_net_nccl_so_SOURCES = $(NET_NCCL_SOURCES) kernels/runtime.c kernels/runtime.h
iobench_net_nccl_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
iobench_net_nccl_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_net_nccl_so_LDFLAGS = $(SANITIZE) -shared
iobench_net_nccl_so_LDADD = $(NCCL_LIBS)
endif
