/* SPDX-License-Identifier: Apache-2.0
 *
 * procfile: a file below /proc or /sys, kept open and re-read for each sample without allocating.
 * One thread per file.
 */
#ifndef IOBENCH_TELEMETRY_PROCFILE_H
#define IOBENCH_TELEMETRY_PROCFILE_H

#include "base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text of such a file: lines, words, numbers. Never reads past the end, allocates nothing. Any
 * thread. */
struct text {
    const char *at, *end;
};

/* Roots of the kernel's files. A container sees less than its host; the host's /sys, bind-mounted
 * elsewhere, shows the rest. */
struct telemetry_roots {
    const char *proc; /* "/proc" */
    const char *sys;  /* "/sys" */
};

extern const struct telemetry_roots telemetry_roots_usual;

struct procfile {
    int fd; /* -1: none */
    char *buffer;
    size_t buffer_bytes;
};

/* Open, and read once to size the buffer, with room for growth. Returns 0, or a negative errno with
 * a reason. Close in either case. */
int procfile_open(struct procfile *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void procfile_close(struct procfile *file); /* a zeroed one is fine */

/* Re-read; text that no longer fits is cut at a line end. Returns 0, or a negative errno without a
 * reason: -ENODEV if the device is gone. */
int procfile_read(struct procfile *file, struct text *text);

struct text text_of(const char *bytes, size_t count);
struct text text_of_string(const char *string);

/* Each consumes its part from the front of *text. Returns false if none is left. */
bool text_line(struct text *text, struct text *line);             /* without its newline */
bool text_word(struct text *text, struct text *word);             /* between blanks and tabs */
bool text_until(struct text *text, char mark, struct text *part); /* consumes the mark, too */

/* Consume a decimal number; if the next word is not a number, or does not fit, consume nothing. */
bool text_u64(struct text *text, uint64_t *value);
/* Consume the numbers that follow, at most these many. Returns how many. */
unsigned text_numbers(struct text *text, uint64_t *values, unsigned most);

bool text_is(struct text text, const char *string);
bool text_starts(struct text text, const char *prefix);
bool text_skip(struct text *text, const char *prefix); /* consume the prefix */

/* Copy with a NUL, truncated if longer. Returns copy. */
char *text_copy(struct text text, char *copy, size_t copy_bytes);

#endif
