/* SPDX-License-Identifier: Apache-2.0
 * The probes, in the order users see them. */
#include "telemetry/plugins.h"

const struct plugin *const probe_registry[] = {
    &probe_disk.plugin,     &probe_nfs.plugin,     &probe_lustre.plugin, &probe_infiniband.plugin,
    &probe_net.plugin,      &probe_process.plugin, &probe_cgroup.plugin, &probe_cpu.plugin,
    &probe_pressure.plugin, &probe_memory.plugin,  &probe_gpu.plugin,    NULL,
};
