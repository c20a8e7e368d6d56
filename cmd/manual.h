/* SPDX-License-Identifier: Apache-2.0
 * manual: generates iobench(1) from the option tables, in man(7) format. */
#ifndef IOBENCH_CMD_MANUAL_H
#define IOBENCH_CMD_MANUAL_H

#include <stdio.h>

void manual_print(FILE *stream);

#endif
