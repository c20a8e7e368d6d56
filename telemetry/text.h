/* SPDX-License-Identifier: Apache-2.0
 *
 * text: parse text of /proc and /sys: lines, words, numbers. Never reads past the end, allocates
 * nothing and knows no file. Any thread.
 */
#ifndef IOBENCH_TELEMETRY_TEXT_H
#define IOBENCH_TELEMETRY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    const char *at, *end;
};

struct text text_of(const char *bytes, size_t count);
struct text text_of_string(const char *string);

/* Each consumes its part from the front of *text. Returns false if none is left. */
bool text_line(struct text *text, struct text *line);             /* without its newline */
bool text_word(struct text *text, struct text *word);             /* between blanks and tabs */
bool text_until(struct text *text, char mark, struct text *part); /* consumes the mark, too */

/* Consume a decimal number; if the next word is not a number, or does not fit, consume nothing. */
bool text_u64(struct text *text, uint64_t *value);

bool text_is(struct text text, const char *string);
bool text_starts(struct text text, const char *prefix);
bool text_skip(struct text *text, const char *prefix); /* consume the prefix */

/* Copy with a NUL, truncated if longer. Returns copy. */
char *text_copy(struct text text, char *copy, size_t copy_bytes);

#endif
