/* SPDX-License-Identifier: Apache-2.0
 * The nccl transport's front end: the transport is in the module iobench-net-nccl.so. */
#include "cmd/net/gpu_settings.h"
#include "cmd/net/transport.h"

static const struct module module_nccl = {
    .file = "iobench-net-nccl.so",
    .variable = "IOBENCH_NET_NCCL_MODULE",
    .libraries = {"libcuda.so.1", "libnccl.so.2"},
    .remedy = "install it (PyTorch's wheels bring NCCL), or add its folder to LD_LIBRARY_PATH",
};

const struct transport_ops transport_nccl = {
    .plugin = {.name = "nccl",
               .summary = "messages and collectives of NCCL between GPUs",
               .options = gpu_options,
               .settings_size = sizeof(struct net_gpu_settings),
               .module = &module_nccl,
               .symbol = "iobench_transport_nccl"},
};
