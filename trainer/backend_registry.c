/* SPDX-License-Identifier: Apache-2.0
 * The exchanges and backends in the order users see them, and the choice of a backend. */
#include "trainer/plugins.h"

#include "base/fail.h"
#include "base/option.h"
#ifdef HAVE_MPI
#include "ranks/ranks.h"
#endif

#include <errno.h>
#include <string.h>

static const struct exchange_ops exchange_none = {
    .plugin = {.name = "none", .summary = "one process, alone"},
};

#ifdef HAVE_MPI
/* The exchange is in the module iobench-mpi.so. */
static const struct exchange_ops exchange_mpi = {
    .plugin = {.name = "mpi",
               .summary = "MPI's non-blocking all-reduce, a bucket at a time",
               .module = &module_mpi,
               .symbol = "iobench_exchange_mpi"},
};
#endif

/* The first usable one is the default. */
const struct plugin *const exchange_registry[] = {
#ifdef HAVE_MPI
    &exchange_mpi.plugin,
#endif
#ifdef HAVE_NCCL
    &exchange_nccl.plugin,
#endif
#ifdef HAVE_CUDA
    &exchange_p2p.plugin,
#endif
    &exchange_none.plugin, NULL,
};

const struct plugin *const backend_registry[] = {
#ifdef HAVE_CUDA
    &backend_cuda.plugin,
#endif
#ifdef HAVE_DNNL
    &backend_cpu.plugin,
#endif
    &backend_reference.plugin,
    NULL,
};

/* A backend without the option computes in FP32. */
static const struct option_spec *precision_option(const struct plugin *plugin)
{
    return plugin->options ? option_find(plugin->options, "precision") : NULL;
}

const char *backend_precision(const struct plugin_choice *choice)
{
    const struct option_spec *row = precision_option(choice->plugin);
    const char *settings = choice->settings;

    return row ? row->choices[*(const int *)(const void *)(settings + row->offset)] : "fp32";
}

/* The registry is in order of preference. A machine may lack a device; one whose CPU backend does
 * not load is installed badly, and must not train at a fraction of its speed without a word. */
int backend_choose(const char *text, const char *precision, struct plugin_choice *choice)
{
    if (strcmp(text, "auto") == 0)
        for (int i = 0; backend_registry[i]; i++)
            if (plugin_usable(backend_registry[i]) == 0 ||
                !backend_ops_of(backend_registry[i])->on_device) {
                text = backend_registry[i]->name;
                break;
            }
    int code = plugin_choose("backend", backend_registry, text, choice);
    if (code)
        return code;
    if (!precision)
        return 0;
    if (precision_option(choice->plugin))
        return option_set(choice->plugin->options, choice->settings, "precision", precision,
                          "--precision");
    return strcmp(precision, "fp32") == 0
               ? 0
               : fail(EINVAL, "--precision: backend %s computes in fp32 and int8",
                      choice->plugin->name);
}
