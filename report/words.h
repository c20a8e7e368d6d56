/* SPDX-License-Identifier: Apache-2.0
 *
 * words: numbers for people, and lines that fit the terminal. A function that takes text fills at
 * least WORDS_BYTES and returns it. Any thread.
 */
#ifndef IOBENCH_REPORT_WORDS_H
#define IOBENCH_REPORT_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WORDS_BYTES = 48, WORDS_WINDOW_BYTES = 128 };

/* "1,281,167" */
const char *words_count(uint64_t count, char *text);
/* Three to four significant digits: "7,912", "82.6", "0.52"; of less one, "0.004"; "-" if not
 * finite. */
const char *words_rate(double rate, char *text);
/* "76.12%", "100.0%" */
const char *words_percent(double share, char *text);
/* "0.42 ms", "12.1 s" */
const char *words_duration(uint64_t duration_ns, char *text);
/* "windows of 227 sorted by offset, reads up to 1.00 MiB"; text: WORDS_WINDOW_BYTES. */
const char *words_window(uint32_t window, uint64_t read_bytes, char *text);
/* Length in bytes of the first line of text (UTF-8), wrapped at width characters. */
size_t words_line(const char *text, size_t width);
/* Print the first column of a table; a name that leaves no blank has a line of its own. */
void words_name(FILE *stream, const char *name, size_t width);
/* Print text from column on, wrapped at the width of the terminal, after `before` as by
 * words_name(). Text from outside must be escaped. */
void words_print(FILE *stream, const char *before, size_t column, const char *text);
/* Print a formatted text of at most 4095 bytes in the same way. */
void words_printf(FILE *stream, const char *before, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "58.3 GB/s", and "54.9 k" of anything; text: WORDS_BYTES. Return text. */
const char *words_byte_rate(double bytes_per_s, char *text);
const char *words_short_rate(double rate, char *text);

#endif
