/* SPDX-License-Identifier: Apache-2.0
 * net: network interfaces (/proc/net/dev, proc(5)). Pure functions; any thread. */
#ifndef IOBENCH_TELEMETRY_NET_H
#define IOBENCH_TELEMETRY_NET_H

#include "telemetry/text.h"

/* RDMA over Converged Ethernet bypasses these counters. */
struct net_counters {
    uint64_t receive_bytes, receive_packets, receive_errors, receive_drops;
    uint64_t transmit_bytes, transmit_packets, transmit_errors, transmit_drops;
};

/* Parse the next interface; its name without the colon. Returns false at the end. */
bool net_parse_next(struct text *text, struct text *name, struct net_counters *counters);

#endif
