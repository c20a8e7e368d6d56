/* SPDX-License-Identifier: Apache-2.0
 *
 * terminal: the width of text output. Any thread.
 */
#ifndef IOBENCH_BASE_TERMINAL_H
#define IOBENCH_BASE_TERMINAL_H

/* Tables fit this width. */
enum { TERMINAL_WIDTH = 80 };

/* Return the columns of a line on fd: COLUMNS from the environment, else the width of the terminal,
 * else TERMINAL_WIDTH. */
unsigned terminal_width(int fd);

#endif
