/* SPDX-License-Identifier: Apache-2.0
 *
 * section: sections of a job file that are jobs of another command: command=checkpoint, its options
 * as keys, and its operand under the operand's name (folder=/mnt/ckpt). [global] does not apply to
 * them. They run in the same process after the file's other jobs, because the ranks of an MPI job
 * can join only once. Main thread.
 */
#ifndef IOBENCH_CMD_SECTION_H
#define IOBENCH_CMD_SECTION_H

#include "cmd/command.h"
#include "cmd/jobfile.h"

struct sections {
    struct invocation *list;
    size_t count;
};

/* Return whether a section names a command. */
bool section_is_foreign(const struct jobfile *jobfile, size_t section);

/* Append one. Returns 0, or a negative errno with a reason "FILE:LINE: ...". */
int sections_add(struct sections *sections, const struct jobfile *jobfile, size_t section,
                 const struct invocation *invocation);
void sections_release(struct sections *sections);

/* Run all, a failed one too does not stop the others; a signal or a lost rank does. Collective,
 * with joined ranks kept by command_keep_ranks(). Returns enum command_exit: that of the last that
 * failed. */
int sections_run(const struct sections *sections);

/* Print their command lines instead. */
void sections_print(const struct sections *sections);

#endif
