/* SPDX-License-Identifier: Apache-2.0
 *
 * infiniband: ports of InfiniBand, RoCE and Omni-Path adapters below /sys/class/infiniband
 * (Documentation/ABI/stable/sysfs-class-infiniband).
 *
 * port_rcv_data and port_xmit_data count words of 4 bytes, headers included. On RoCE they count
 * RDMA only; TCP over the same adapter is counted by the network interface only. Drivers without
 * 64-bit counters saturate at 2^32 - 1. Software RDMA (rxe) has no such counters: the network
 * interface beneath counts the bytes, together with all other traffic, and parts are named
 * "rxe0/1@eth0".
 */
#ifndef IOBENCH_TELEMETRY_INFINIBAND_H
#define IOBENCH_TELEMETRY_INFINIBAND_H

#include "telemetry/procfile.h"

enum { INFINIBAND_PORTS_MAX = 64 };

struct infiniband_port {
    char device[40]; /* "mlx5_0" */
    unsigned number;
    char link_layer[16]; /* "InfiniBand" or "Ethernet" */
    bool active;
    double gbit_per_s;  /* from the driver; always 2.5 with rxe; 0: unknown */
    char interface[32]; /* network interface beneath; "" */
};

/* List at most maximum ports. Returns the count. Off the clock. */
uint32_t infiniband_list(const struct telemetry_roots *roots, struct infiniband_port *ports,
                         uint32_t maximum);

/* Parse "100 Gb/sec (4X EDR)". Returns 0 if malformed. Pure. */
double infiniband_parse_rate(struct text text);

#endif
