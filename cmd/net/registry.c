/* SPDX-License-Identifier: Apache-2.0
 * The transports, in display order; front ends of those in modules, so that the program starts
 * without their libraries; and the engines of tcp. */
#include "base/option.h"
#include "ranks/ranks.h"
#include "cmd/net/tcp.h"

#ifdef HAVE_MPI
static const struct transport_ops transport_mpi = {
    .plugin = {.name = "mpi",
               .summary = "messages and collectives of the MPI that started the job",
               .module = &module_mpi,
               .symbol = "iobench_transport_mpi"},
};
#endif

#ifdef HAVE_VERBS
static const struct module module_verbs = {
    .file = "iobench-verbs.so",
    .variable = "IOBENCH_VERBS_MODULE",
    .libraries = {"libibverbs.so.1"},
    .remedy = "install it: packages libibverbs1 and ibverbs-providers",
};

#define FIELD(field) .offset = offsetof(struct verbs_settings, field)
/* clang-format off */
static const struct option_spec verbs_options[] = {
    {"device", 0, OPTION_TEXT, FIELD(device), .metavar = "NAME[+NAME]",
     .summary = "RDMA device, such as mlx5_0; ranks of a node take several in turn; default: the "
                "first with an active port"},
    {"port", 0, OPTION_COUNT, FIELD(port), .fallback = "auto", .zero = "auto", .maximum = 255,
     .summary = "port of the device; default: the first that is active"},
    {"gid", 0, OPTION_TEXT, FIELD(gid), .metavar = "INDEX",
     .summary = "address of an Ethernet port; default: RoCE v2 with an IPv4 address, as iobench "
                "doctor shows"},
    {"op", 0, OPTION_CHOICE, FIELD(op), .fallback = "write", .choices = verbs_op_names,
     .summary = "which operation moves messages"},
    {"qps", 0, OPTION_COUNT, FIELD(qps), .fallback = "1", .minimum = 1, .maximum = VERBS_QPS_MAX,
     .summary = "queue pairs between two ranks; messages take them in turn"},
    {"inline", 0, OPTION_SIZE, FIELD(inline_bytes), .fallback = "220", .maximum = 1024,
     .summary = "largest message that the processor copies into the request, if the device can"},
    {"timeout", 0, OPTION_COUNT, FIELD(timeout), .fallback = "14", .minimum = 1, .maximum = 31,
     .summary = "send again without an acknowledgement after 4.096 us x 2^N"},
    {"sl", 0, OPTION_COUNT, FIELD(service_level), .maximum = 15, .summary = "service level"},
    {"class", 0, OPTION_COUNT, FIELD(traffic_class), .maximum = 255,
     .summary = "traffic class of RoCE, which switches map to a lossless priority"},
    {0},
};
/* clang-format on */

static const struct transport_ops transport_verbs = {
    .plugin = {.name = "verbs",
               .summary = "RDMA by libibverbs: reliable connections that read, write or send",
               .options = verbs_options,
               .settings_size = sizeof(struct verbs_settings),
               .module = &module_verbs,
               .symbol = "iobench_transport_verbs"},
};
#undef FIELD
#endif

#ifdef HAVE_CUDA
#define FIELD(field) .offset = offsetof(struct net_gpu_settings, field)
static const struct option_spec gpu_options[] = {
    {"device", 0, OPTION_COUNT, FIELD(device), .maximum = 1023,
     .summary = "GPU of a node's first rank; the others take the next ones in turn"},
    {0},
};
#undef FIELD

static const struct module module_p2p = {
    .file = "iobench-net-p2p.so",
    .variable = "IOBENCH_NET_P2P_MODULE",
    .libraries = {"libcuda.so.1"},
    .remedy = "install the NVIDIA driver",
};

static const struct transport_ops transport_p2p = {
    .plugin = {.name = "p2p",
               .summary = "copies between the GPUs of a node (cudaMemcpyPeer); no collectives",
               .options = gpu_options,
               .settings_size = sizeof(struct net_gpu_settings),
               .module = &module_p2p,
               .symbol = "iobench_transport_p2p"},
};
#endif

#ifdef HAVE_NCCL
static const struct module module_nccl = {
    .file = "iobench-net-nccl.so",
    .variable = "IOBENCH_NET_NCCL_MODULE",
    .libraries = {"libcuda.so.1", "libnccl.so.2"},
    .remedy = "install it (PyTorch's wheels bring NCCL), or add its folder to LD_LIBRARY_PATH",
};

static const struct transport_ops transport_nccl = {
    .plugin = {.name = "nccl",
               .summary = "messages and collectives of NCCL between GPUs",
               .options = gpu_options,
               .settings_size = sizeof(struct net_gpu_settings),
               .module = &module_nccl,
               .symbol = "iobench_transport_nccl"},
};
#endif

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
