/* SPDX-License-Identifier: Apache-2.0
 * The transports, in display order; and the engines of one. */
#include "cmd/net/tcp.h"

const struct plugin *const transport_registry[] = {
#ifdef HAVE_MPI
    &transport_mpi.plugin,
#endif
    &transport_tcp.plugin,
#ifdef HAVE_VERBS
    &transport_verbs.plugin,
#endif
#ifdef HAVE_NCCL
    &transport_nccl.plugin,
#endif
#ifdef HAVE_CUDA
    &transport_p2p.plugin,
#endif
    NULL,
};

const struct tcp_engine *const tcp_engines[] = {
#ifdef HAVE_URING
    &tcp_uring,
#endif
    &tcp_plain,
    NULL,
};
