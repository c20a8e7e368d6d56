/* SPDX-License-Identifier: Apache-2.0
 * The verbs transport's front end: its options; the transport is in the module iobench-verbs.so. A
 * program built with libibverbs therefore starts on machines without it. */
#include "cmd/net/transport.h"

#include "base/option.h"
#include "cmd/net/verbs_settings.h"

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
     .summary = "of the device; default: the first that is active"},
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

const struct transport_ops transport_verbs = {
    .plugin = {.name = "verbs",
               .summary = "RDMA by libibverbs: reliable connections that read, write or send",
               .options = verbs_options,
               .settings_size = sizeof(struct verbs_settings),
               .module = &module_verbs,
               .symbol = "iobench_transport_verbs"},
};
