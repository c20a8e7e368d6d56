/* SPDX-License-Identifier: Apache-2.0
 *
 * numa: the nodes of this machine that a thread may run on, and keeping a thread or its memory on
 * one of them. Two system calls and sysfs, so no library. On a machine of one node, and on kernels
 * without NUMA, there is one node and nothing is bound.
 */
#ifndef IOBENCH_BASE_NUMA_H
#define IOBENCH_BASE_NUMA_H

#include <stdint.h>

enum { NUMA_NODES = 64 };

struct numa {
    const char *sys; /* "/sys", or another machine's for tests */
    uint32_t count;  /* nodes with memory and with CPUs that this thread may use; at least 1 */
    int nodes[NUMA_NODES];
};

/* Look at sys; it is kept. */
void numa_find(struct numa *numa, const char *sys);

/* Keep this thread on the CPUs of nodes[index], of those it may use. Nothing with one node. */
void numa_run_on(const struct numa *numa, uint32_t index);

/* Memory that this thread touches first comes from nodes[index] while it has some, until the
 * policy is put back as it was. Nothing with one node. */
struct numa_policy {
    int mode; /* negative: nothing was changed */
    unsigned long nodes[1024 / (8 * sizeof(unsigned long))];
};
struct numa_policy numa_prefer(const struct numa *numa, uint32_t index);
void numa_put_back(const struct numa_policy *policy);

#endif
