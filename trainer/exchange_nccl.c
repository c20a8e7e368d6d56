/* SPDX-License-Identifier: Apache-2.0
 * The nccl exchange's front end: the exchange is in the module iobench-nccl.so. */
#include "trainer/plugins.h"

#include "base/module.h"

static const struct module module_nccl = {
    .file = "iobench-nccl.so",
    .variable = "IOBENCH_NCCL_MODULE",
    .libraries = {"libcuda.so.1", "libnccl.so.2"},
    .remedy = "install it (PyTorch's wheels bring it), or add its folder to LD_LIBRARY_PATH",
};

static int nccl_usable(void)
{
    return module_usable(&exchange_nccl.place, &exchange_nccl.plugin);
}

const struct exchange_ops exchange_nccl = {
    .plugin = {.name = "nccl",
               .summary = "NCCL's all-reduce between GPUs, a bucket at a time behind the backward "
                          "pass",
               .usable = nccl_usable},
    .place = {&module_nccl, "iobench_exchange_nccl"},
};
