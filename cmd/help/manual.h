/* SPDX-License-Identifier: Apache-2.0
 * manual: generates iobench(1) and a page per command from the option tables, in man(7) format. */
#ifndef IOBENCH_CMD_MANUAL_H
#define IOBENCH_CMD_MANUAL_H

#include "cmd/command.h"

#include <stdio.h>

void manual_print(FILE *stream);
void manual_command(FILE *stream, const struct command *command); /* iobench-NAME(1) */

#endif
