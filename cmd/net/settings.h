/* SPDX-License-Identifier: Apache-2.0
 * The options of transports in modules: parsed by the program, used by the modules. */
#ifndef IOBENCH_CMD_NET_SETTINGS_H
#define IOBENCH_CMD_NET_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

struct net_gpu_settings {
    uint64_t device; /* of those CUDA_VISIBLE_DEVICES leaves */
};

enum verbs_op { VERBS_WRITE, VERBS_READ, VERBS_SEND };
static const char *const verbs_op_names[] = {"write", "read", "send", NULL};

enum { VERBS_QPS_MAX = 64 };

struct verbs_settings {
    char *device, *gid; /* NULL: choose */
    uint64_t port;      /* 0: choose */
    int op;             /* enum verbs_op */
    uint64_t qps;
    uint64_t inline_bytes;
    uint64_t timeout; /* 4.096 us x 2^timeout for an acknowledgement */
    uint64_t service_level, traffic_class;
};

#endif
