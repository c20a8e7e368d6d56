/* SPDX-License-Identifier: Apache-2.0
 *
 * words: formats numbers for people. Each function returns text, of at least WORDS_BYTES. Pure.
 */
#ifndef IOBENCH_REPORT_WORDS_H
#define IOBENCH_REPORT_WORDS_H

#include <stddef.h>
#include <stdint.h>

enum { WORDS_BYTES = 48, WORDS_WINDOW_BYTES = 128 };

/* "1,281,167" */
const char *words_count(uint64_t count, char *text);
/* Three to four significant digits: "7,912", "82.6", "1.04", "0.52"; "-" if not finite. */
const char *words_rate(double rate, char *text);
/* "0.42 ms", "12.1 s" */
const char *words_duration(uint64_t duration_ns, char *text);
/* "windows of 227 sorted by offset, reads up to 1.00 MiB"; text: WORDS_WINDOW_BYTES. */
const char *words_window(uint32_t window, uint64_t read_bytes, char *text);
/* Length of the first line of text, wrapped at width bytes. */
size_t words_line(const char *text, size_t width);

#endif
