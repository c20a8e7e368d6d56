/* SPDX-License-Identifier: Apache-2.0
 *
 * program: this program, for commands that start it again and keep what it measured. Any thread.
 */
#ifndef IOBENCH_CMD_PROGRAM_H
#define IOBENCH_CMD_PROGRAM_H

#include <stdint.h>

/* Return the path to start it by, from the environment if the dynamic loader was started by name.
 * The caller frees it. NULL with a reason. */
char *program_path(void);

/* Return a number that is the same for equal builds only: of the build ID written by the linker. */
uint64_t program_build(void);

#endif
