/* SPDX-License-Identifier: Apache-2.0
 *
 * collective: one collective operation over all ranks, by the transport's own means or, where it
 * has none, by rings of messages. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_COLLECTIVE_H
#define IOBENCH_CMD_NET_COLLECTIVE_H

#include "cmd/net/transport.h"

/* As transport_start_collective(), and waits until it is done. */
int collective_run(struct transport *transport, enum collective kind, uint64_t out, uint64_t in,
                   uint64_t bytes);

const char *collective_name(enum collective kind); /* "all_reduce" */
/* Bus bandwidth over algorithm bandwidth, as defined by nccl-tests (doc/PERFORMANCE.md): comparable
 * with the speed of the hardware, whatever the number of ranks. */
double collective_bus_factor(enum collective kind, uint32_t ranks);

#endif
