/* SPDX-License-Identifier: Apache-2.0
 * manual: iobench(1) out of the option tables, as man(7) text. */
#ifndef IOBENCH_CMD_MANUAL_H
#define IOBENCH_CMD_MANUAL_H

#include <stdio.h>

void manual_print(FILE *stream);

#endif
