/* SPDX-License-Identifier: Apache-2.0
 *
 * infiniband: ports of InfiniBand, RoCE and Omni-Path adapters below /sys/class/infiniband
 * (Documentation/ABI/stable/sysfs-class-infiniband).
 *
 * port_rcv_data and port_xmit_data count words of 4 bytes, with all headers. On RoCE they count
 * RDMA alone: TCP over the same adapter is in the network interface's counters, and the other way
 * round. Drivers without 64-bit counters stop at 2^32 - 1. Software RDMA (rxe) has no such
 * counters; there the network interface beneath tells the bytes, of everything that passes, and the
 * parts are called "rxe0/1@eth0".
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
    double gbit_per_s;  /* as the driver says; rxe always says 2.5; 0: not known */
    char interface[32]; /* network interface beneath; "" */
};

/* The ports there are, up to maximum. Returns the count. Off the clock. */
uint32_t infiniband_list(const struct telemetry_roots *roots, struct infiniband_port *ports,
                         uint32_t maximum);

/* "100 Gb/sec (4X EDR)"; 0 when it is not that. A pure function. */
double infiniband_parse_rate(struct text text);

#endif
