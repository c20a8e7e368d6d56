/* SPDX-License-Identifier: Apache-2.0
 * Members of the transport family, for its registry only. */
#ifndef IOBENCH_CMD_NET_PLUGINS_H
#define IOBENCH_CMD_NET_PLUGINS_H

#include "cmd/net/transport.h"

extern const struct transport_ops transport_mpi;
extern const struct transport_ops transport_nccl;
extern const struct transport_ops transport_p2p;
extern const struct transport_ops transport_tcp;
extern const struct transport_ops transport_verbs;

#endif
