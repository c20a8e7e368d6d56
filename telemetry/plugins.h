/* SPDX-License-Identifier: Apache-2.0
 * The probes, for telemetry/registry.c only. */
#ifndef IOBENCH_TELEMETRY_PLUGINS_H
#define IOBENCH_TELEMETRY_PLUGINS_H

#include "telemetry/probe.h"

extern const struct probe_ops probe_cgroup;
extern const struct probe_ops probe_cpu;
extern const struct probe_ops probe_disk;
extern const struct probe_ops probe_gpu;
extern const struct probe_ops probe_infiniband;
extern const struct probe_ops probe_lustre;
extern const struct probe_ops probe_memory;
extern const struct probe_ops probe_net;
extern const struct probe_ops probe_nfs;
extern const struct probe_ops probe_pressure;
extern const struct probe_ops probe_process;

#endif
