/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign_job: recognises the job files of other programs, given by mistake, and prints the nearest
 * job of ours. Main thread. */
#ifndef IOBENCH_CMD_FOREIGN_JOB_H
#define IOBENCH_CMD_FOREIGN_JOB_H

/* text: NUL-terminated. Returns 0 if it is of no other program, else -EINVAL with a reason that
 * names the program, with our job on standard output. */
int foreign_job_check(const char *path, const char *text);

#endif
