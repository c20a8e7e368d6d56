/* SPDX-License-Identifier: Apache-2.0
 * completion: scripts that complete the command line, generated from the option tables. They hold
 * every word, so completing starts no program. */
#ifndef IOBENCH_CMD_COMPLETION_H
#define IOBENCH_CMD_COMPLETION_H

#include "cmd/command.h"

/* Call visit for each option of a command: its own, those it adopts from the default command, those
 * of all commands. */
void completion_each(const struct command *command,
                     void (*visit)(const struct option_spec *row, const struct command *command));

/* Return the known values of an option, each followed by a blank: choices or plug-ins. "": any
 * value. */
const char *completion_values(const struct option_spec *row, char *text, size_t text_bytes);

bool completion_is_on(const struct option_spec *row); /* a flag that --no-NAME turns off */

void completion_bash(void);
void completion_zsh(void);
void completion_fish(void);

#endif
