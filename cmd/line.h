/* SPDX-License-Identifier: Apache-2.0
 *
 * line: a status line that is redrawn in place, and its parts. Prints nothing unless stderr is a
 * terminal. Main thread only.
 */
#ifndef IOBENCH_CMD_LINE_H
#define IOBENCH_CMD_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line {
    bool shown; /* stderr is a terminal */
    char last[256];
};

enum { LINE_PART_BYTES = 48 };

struct line line_start(void);
void line_show(struct line *line, const char *text);
/* Call before printing anything else. */
void line_clear(struct line *line);

/* "[#########...........]  45%"; "" without a total. part: LINE_PART_BYTES. */
const char *line_bar(char *part, uint64_t done, uint64_t total);
/* "  0:42 left", "" while unknown. */
const char *line_left(char *part, uint64_t done, uint64_t total, uint64_t elapsed_ns);

#endif
