/* SPDX-License-Identifier: Apache-2.0
 *
 * escape: makes outside text (file names, labels, messages of programs and servers) harmless for a
 * terminal. Forbidden bytes are written as \xNN; valid UTF-8 stays. Any thread.
 */
#ifndef IOBENCH_BASE_ESCAPE_H
#define IOBENCH_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

enum escape_kind {
    ESCAPE_INVALID = 1, /* bytes that are not UTF-8 */
    ESCAPE_CONTROL = 2, /* control characters except \n and \t, and bidirectional overrides */
    ESCAPE_LINES = 4,   /* \n and \t */
    ESCAPE_ALL = 7
};

/* Write text and a NUL to `to`, truncated to `room` bytes. Returns `to`. */
char *escape_text(unsigned kinds, const char *text, size_t bytes, char *to, size_t room);

/* Escape with ESCAPE_ALL, so the text stays on its line and changes no other; truncated at about
 * 16,000 bytes. Valid until the fourth next call on this thread. */
const char *escape_shown(const char *text);

/* Replace stdout and stderr of the process by streams that apply ESCAPE_INVALID | ESCAPE_CONTROL.
 * On a terminal the escape sequences below pass. Returns 0 or -ENOMEM. Call first in main(). */
int escape_streams(FILE **output, FILE **errors);
/* Return the errno of the first write to the output that failed, or 0. Flush it before. */
int escape_output_error(void);

#define ESCAPE_BOLD "\033[1m"
#define ESCAPE_ALARM "\033[1;31m"
#define ESCAPE_PLAIN "\033[0m"

enum { TERMINAL_WIDTH = 80 }; /* tables fit it */

/* Return the columns of a line on fd: COLUMNS from the environment, else the width of the terminal,
 * else TERMINAL_WIDTH. */
unsigned terminal_width(int fd);

#endif
