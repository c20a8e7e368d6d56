/* SPDX-License-Identifier: Apache-2.0
 * Emulated nodes: this process enters a network and a mount namespace of its own, where
 * cmd/study/nodes.sh makes the namespaces of the nodes and what mpirun needs to reach them. Nothing
 * outside changes, and all of it goes with the last process inside. */
#include "cmd/study/study.h"

#include "base/child.h"
#include "base/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { NODES_MAX = 250 }; /* addresses of the subnet */

static const uint64_t time_limit_ns = UINT64_C(120000000000);

const char *study_nodes_text(const struct study_options *options, char text[STUDY_NODES_BYTES])
{
    if (!options->emulates_nodes)
        return NULL;
    if (options->link_bytes_per_s)
        snprintf(text, STUDY_NODES_BYTES, "--emulate-nodes --link-rate %" PRIu64 "B/s",
                 options->link_bytes_per_s);
    else
        snprintf(text, STUDY_NODES_BYTES, "--emulate-nodes");
    return text;
}

/* Make the nodes. See there for its arguments and what it leaves in /run/netns. */
static int run_script(unsigned count, uint64_t link_bytes_per_s)
{
    char nodes[16], rate[24];
    const char *const argv[] = {"sh", "-c", study_text_shipped("nodes.sh"), "nodes.sh", nodes,
                                rate, NULL};
    const struct child_task task = {.argv = argv, .timeout_ns = time_limit_ns};
    struct child_result result;

    snprintf(nodes, sizeof nodes, "%u", count);
    snprintf(rate, sizeof rate, "%" PRIu64, link_bytes_per_s);
    int code = child_run(&task, &result);
    return code == 0 && result.status ? fail(EIO, "--emulate-nodes: %s", result.output) : code;
}

int study_nodes_emulate(unsigned count, uint64_t link_bytes_per_s)
{
    if (count > NODES_MAX)
        return fail(EINVAL, "--emulate-nodes: %u ranks, but at most %d nodes", count, NODES_MAX);
    if (unshare(CLONE_NEWNET | CLONE_NEWNS))
        return fail(errno, "--emulate-nodes: no namespaces can be made here: %s",
                    fail_errno_text(errno));
    int code = run_script(count, link_bytes_per_s);
    if (code == 0) {
        /* Ranks go to the nodes one by one, and talk over their links alone. Open MPI 5 starts them
         * with PRRTE, which has variables of its own. */
        static const char *const settings[][2] = {
            {"OMPI_MCA_orte_default_hostfile", "/run/netns/hosts"},
            {"OMPI_MCA_plm_rsh_agent", "sh /run/netns/agent"},
            {"OMPI_MCA_rmaps_base_mapping_policy", "node"},
            {"OMPI_MCA_oob_tcp_if_include", "198.18.0.0/24"},
            {"PRTE_MCA_prte_default_hostfile", "/run/netns/hosts"},
            {"PRTE_MCA_plm_ssh_agent", "sh /run/netns/agent"},
            {"PRTE_MCA_rmaps_default_mapping_policy", "node:oversubscribe"},
            {"PRTE_MCA_oob_tcp_if_include", "198.18.0.0/24"},
            {"OMPI_MCA_btl_tcp_if_include", "198.18.0.0/24"},
            {"OMPI_MCA_btl", "self,tcp"},
            {"OMPI_MCA_pml", "ob1"},
            {"OMPI_MCA_mpi_yield_when_idle", "1"},
        };
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
            setenv(settings[i][0], settings[i][1], 1);
    }
    return code;
}
