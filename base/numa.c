/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numa.h"

#include "base/file.h"

#include <assert.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES_MOST = 1024 }; /* MAX_NUMNODES of the kernel */

/* Parse "0-3,8,10-11"; sets[i] for each number below `most`. Returns false if the file is
 * missing. */
static bool read_list(const char *sys, const char *name, bool *set, unsigned most)
{
    char path[512];
    unsigned first, last;

    memset(set, 0, most * sizeof *set);
    snprintf(path, sizeof path, "%s/devices/system/node/%s", sys, name);
    FILE *file = file_stream_kernel(path);
    if (!file)
        return false;
    while (fscanf(file, "%u", &first) == 1) {
        int next = fgetc(file);
        last = first;
        if (next == '-') {
            if (fscanf(file, "%u", &last) != 1)
                break;
            next = fgetc(file);
        }
        for (unsigned i = first; i <= last && i < most; i++)
            set[i] = true;
        if (next != ',')
            break;
    }
    fclose(file);
    return true;
}

/* Find the node's CPUs that this thread may use. Returns false if there are none. */
static bool cpus_of(const char *sys, int node, cpu_set_t *cpus)
{
    bool list[CPU_SETSIZE];
    char name[32];
    cpu_set_t allowed;

    CPU_ZERO(cpus);
    snprintf(name, sizeof name, "node%d/cpulist", node);
    if (!read_list(sys, name, list, CPU_SETSIZE) || sched_getaffinity(0, sizeof allowed, &allowed))
        return false;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (list[cpu] && CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, cpus);
    return CPU_COUNT(cpus) > 0;
}

void numa_find(struct numa *numa, const char *sys)
{
    bool with_memory[NODES_MOST];
    cpu_set_t cpus;

    *numa = (struct numa){.sys = sys};
    if (read_list(sys, "has_memory", with_memory, NODES_MOST))
        for (int node = 0; node < NODES_MOST && numa->count < NUMA_NODES; node++)
            if (with_memory[node] && cpus_of(sys, node, &cpus))
                numa->nodes[numa->count++] = node;
    if (numa->count == 0)
        numa->count = 1;
}

void numa_run_on(const struct numa *numa, uint32_t index)
{
    cpu_set_t cpus;

    assert(index < numa->count);
    if (numa->count > 1 && cpus_of(numa->sys, numa->nodes[index], &cpus))
        sched_setaffinity(0, sizeof cpus, &cpus);
}

struct numa_policy numa_prefer(const struct numa *numa, uint32_t index)
{
    const unsigned long bits = 8 * sizeof(unsigned long);
    struct numa_policy before = {.mode = -1};
    unsigned long nodes[NODES_MOST / (8 * sizeof(unsigned long))] = {0};

    assert(index < numa->count);
    if (numa->count < 2 ||
        syscall(SYS_get_mempolicy, &before.mode, before.nodes, NODES_MOST, NULL, 0))
        return (struct numa_policy){.mode = -1};
    unsigned long node = (unsigned long)numa->nodes[index];
    nodes[node / bits] = 1UL << node % bits;
    /* Fails if a cpuset excludes the node: then memory comes from elsewhere. */
    syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, NODES_MOST);
    return before;
}

void numa_put_back(const struct numa_policy *policy)
{
    if (policy->mode >= 0)
        syscall(SYS_set_mempolicy, policy->mode, policy->nodes, NODES_MOST);
}
