/* SPDX-License-Identifier: Apache-2.0
 *
 * json: what jansson lacks: strings of any bytes, numbers that are none, and documents that are
 * whole or an error. Whoever builds a document need not look at each call; what ran out of memory
 * is noted here. Main thread.
 */
#ifndef IOBENCH_BASE_JSON_H
#define IOBENCH_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Text as a string; bytes that are not UTF-8 are written as \\xNN. text NULL: null. */
json_t *json_text(const char *text);
json_t *json_text_of(const char *text, size_t bytes);

/* A number, or null where there is none (NaN, infinity): jansson would leave out the whole member.
 */
json_t *json_number(double value);

/* 0, or -ENOMEM with a reason when jansson ran out of memory since the last call: the document
 * that was built lacks something. */
int json_check(void);

/* A document as text, to be freed; all of it in ASCII, so a terminal may show it. flags: jansson's.
 * NULL with a reason, also when json_check() finds something. */
char *json_to_text(const json_t *value, size_t flags);

#endif
