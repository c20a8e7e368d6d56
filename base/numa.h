/* SPDX-License-Identifier: Apache-2.0
 *
 * numa: the NUMA nodes that this process may run on, and binding threads and their memory to one.
 * It needs only two system calls and sysfs, hence no library. On machines with one node and kernels
 * without NUMA there is one node and nothing is bound.
 */
#ifndef IOBENCH_BASE_NUMA_H
#define IOBENCH_BASE_NUMA_H

#include <stdint.h>

enum { NUMA_NODES = 64 };

struct numa {
    const char *sys; /* "/sys", or a copy of another machine's for tests */
    uint32_t count;  /* nodes with memory and CPUs that this thread may use; at least 1 */
    int nodes[NUMA_NODES];
};

/* Read the topology; keeps `sys`. */
void numa_find(struct numa *numa, const char *sys);

/* Bind this thread to the CPUs of nodes[index] that it may use. No-op with one node. */
void numa_run_on(const struct numa *numa, uint32_t index);

/* For memory that this thread touches first, prefer nodes[index], until the policy is restored.
 * No-op with one node. */
struct numa_policy {
    int mode; /* negative: nothing to restore */
    unsigned long nodes[1024 / (8 * sizeof(unsigned long))];
};
struct numa_policy numa_prefer(const struct numa *numa, uint32_t index);
void numa_put_back(const struct numa_policy *policy);

#endif
