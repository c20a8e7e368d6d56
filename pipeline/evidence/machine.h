/* SPDX-License-Identifier: Apache-2.0
 *
 * machine: the machine that this process runs on. Knows no data set. The roots are arguments,
 * "/proc" and "/sys". Any thread.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_MACHINE_H
#define IOBENCH_PIPELINE_EVIDENCE_MACHINE_H

#include "pipeline/result/result.h"

/* Fill in host, kernel, CPU, memory, sandbox and the time; not the storage or the command. */
void machine_describe(struct environment *environment, const char *proc, const char *sys);
/* Return whether a hypervisor, and maybe its cache, is beneath. */
bool machine_is_virtual(const char *proc, const char *sys);

#endif
