/* SPDX-License-Identifier: Apache-2.0
 *
 * escape: text from outside (names of files, labels, messages of programs and servers) made
 * harmless for a terminal. What is not allowed is written as \xNN, byte by byte; valid UTF-8 stays.
 * Any thread.
 */
#ifndef IOBENCH_BASE_ESCAPE_H
#define IOBENCH_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

enum escape_kind {
    ESCAPE_INVALID = 1, /* bytes that are not UTF-8 */
    ESCAPE_CONTROL = 2, /* control characters but \n and \t, and what turns the direction of text */
    ESCAPE_LINES = 4,   /* \n and \t */
    ESCAPE_ALL = 7
};

/* Write text and a NUL to `to`, as much as room holds. Returns to. */
char *escape_text(unsigned kinds, const char *text, size_t bytes, char *to, size_t room);

/* Text with ESCAPE_ALL, so that it stays in its line and changes no other; cut at some 16,000
 * bytes. Good until the fourth next call of this thread. */
const char *escape_shown(const char *text);

/* Put streams to the descriptors 1 and 2 in the place of a program's two, which write with
 * ESCAPE_INVALID | ESCAPE_CONTROL. Of escape sequences those below pass, to a terminal. 0 or
 * -ENOMEM. First thing in main(). */
int escape_streams(FILE **output, FILE **errors);

#define ESCAPE_BOLD "\033[1m"
#define ESCAPE_ALARM "\033[1;31m"
#define ESCAPE_PLAIN "\033[0m"

#endif
