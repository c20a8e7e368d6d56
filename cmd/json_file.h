/* SPDX-License-Identifier: Apache-2.0
 * json_file: JSON of a command that is no run. Main thread. */
#ifndef IOBENCH_CMD_JSON_FILE_H
#define IOBENCH_CMD_JSON_FILE_H

#include <jansson.h>
#include <stddef.h>

/* A JSON string; bytes that are not UTF-8 become '?'. */
json_t *json_file_text(const char *text);
json_t *json_file_text_of(const char *text, size_t bytes);

/* Write root to path ("-": the standard output) and give it up. 0 or a negative errno. */
int json_file_write(const char *path, json_t *root);

#endif
