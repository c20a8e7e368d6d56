/* SPDX-License-Identifier: Apache-2.0
 *
 * json: what jansson lacks: strings of any bytes, non-finite numbers, and complete documents or an
 * error. Callers need not check each call: running out of memory is recorded here. Main thread.
 */
#ifndef IOBENCH_BASE_JSON_H
#define IOBENCH_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Make a string; bytes that are not UTF-8 become \\xNN. NULL gives null. */
json_t *json_text(const char *text);
json_t *json_text_of(const char *text, size_t bytes);
json_t *json_texts(uint32_t count, size_t stride, const char *texts); /* stride: in bytes */

/* Make a number, or null for NaN and infinity, where jansson would drop the whole member. */
json_t *json_number(double value);

void json_put_text(json_t *object, const char *key, const char *text);
void json_put_number(json_t *object, const char *key, double value);
void json_put_count(json_t *object, const char *key, uint64_t count);

/* Add a new value and return it, borrowed, to be filled; NULL, which can be filled too, if memory
 * ran out: jansson would have freed it. */
json_t *json_put_new(json_t *object, const char *key, json_t *value);
json_t *json_append_new(json_t *array, json_t *value);

/* Returns 0, or -ENOMEM with a reason if jansson ran out of memory since the last call: the
 * document is then incomplete. */
int json_check(void);

/* Return a document as malloc()ed ASCII text, safe for a terminal. flags: jansson's. NULL with a
 * reason, also when json_check() fails. */
char *json_to_text(const json_t *value, size_t flags);

#endif
