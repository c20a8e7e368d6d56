# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	cmd/net/measure.c cmd/net/measure.h \
	cmd/net/registry.c \
	cmd/net/tcp.c cmd/net/tcp.h \
	cmd/net/transport.c cmd/net/transport.h

if HAVE_URING
libiobench_a_SOURCES += cmd/net/tcp_uring.c
endif

if HAVE_VERBS
VERBS_SOURCES = cmd/net/verbs/verbs.c base/module_version.c
module_PROGRAMS += iobench-verbs.so
iobench_verbs_so_SOURCES = $(VERBS_SOURCES)
iobench_verbs_so_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
iobench_verbs_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_verbs_so_LDFLAGS = $(SANITIZE) -shared
iobench_verbs_so_LDADD = $(VERBS_LIBS)
endif

# Between GPUs.
if HAVE_CUDA
NET_P2P_SOURCES = cmd/net/cuda/arena.h cmd/net/cuda/p2p.c base/module_version.c
module_PROGRAMS += iobench-net-p2p.so
iobench_net_p2p_so_SOURCES = $(NET_P2P_SOURCES) kernels/runtime.c kernels/runtime.h
iobench_net_p2p_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
iobench_net_p2p_so_CFLAGS = $(AM_CFLAGS) -fPIC
# Only what it uses: not cuDNN.
iobench_net_p2p_so_LDFLAGS = $(SANITIZE) -shared -Wl,--as-needed
iobench_net_p2p_so_LDADD = $(CUDA_LIBS)
endif

if HAVE_NCCL
NET_NCCL_SOURCES = cmd/net/cuda/arena.h cmd/net/cuda/nccl.c base/module_version.c
module_PROGRAMS += iobench-net-nccl.so
iobench_net_nccl_so_SOURCES = $(NET_NCCL_SOURCES) kernels/runtime.c kernels/runtime.h
iobench_net_nccl_so_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
iobench_net_nccl_so_CFLAGS = $(AM_CFLAGS) -fPIC
iobench_net_nccl_so_LDFLAGS = $(SANITIZE) -shared
iobench_net_nccl_so_LDADD = $(NCCL_LIBS)
endif
