/* SPDX-License-Identifier: Apache-2.0
 * help: usage texts generated from the option tables. */
#ifndef IOBENCH_CMD_HELP_HELP_H
#define IOBENCH_CMD_HELP_HELP_H

#include "cmd/command.h"

/* Options of every command; main() handles --help and --version. */
enum help_wanted { HELP_NO, HELP_YES, HELP_ALL };
struct common_settings {
    int help; /* enum help_wanted */
    bool version;
    int sandbox; /* enum sandbox_wanted */
    bool allow_commands;
};
extern const struct option_spec common_options[];

void help_program(void); /* commands and most used options */
void help_command(const struct command *command);
void help_everything(void); /* every command and plug-in, with all options */

#endif
