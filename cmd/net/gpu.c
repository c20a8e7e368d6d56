/* SPDX-License-Identifier: Apache-2.0
 * The front ends of the transports between GPUs, which are in modules. */
#include "cmd/net/gpu_settings.h"
#include "cmd/net/transport.h"

#define FIELD(field) .offset = offsetof(struct net_gpu_settings, field)
const struct option_spec gpu_options[] = {
    {"device", 0, OPTION_COUNT, FIELD(device), .maximum = 1023,
     .summary = "GPU of a node's first rank; the others take the next ones in turn"},
    {0},
};

static const struct module module_p2p = {
    .file = "iobench-net-p2p.so",
    .variable = "IOBENCH_NET_P2P_MODULE",
    .libraries = {"libcuda.so.1"},
    .remedy = "install the NVIDIA driver",
};

const struct transport_ops transport_p2p = {
    .plugin = {.name = "p2p",
               .summary = "copies between the GPUs of a node (cudaMemcpyPeer); no collectives",
               .options = gpu_options,
               .settings_size = sizeof(struct net_gpu_settings),
               .module = &module_p2p,
               .symbol = "iobench_transport_p2p"},
};
