/* SPDX-License-Identifier: Apache-2.0
 * json_file: JSON of a command that is no run. Main thread. */
#ifndef IOBENCH_CMD_JSON_FILE_H
#define IOBENCH_CMD_JSON_FILE_H

#include <jansson.h>

/* Write root to path ("-": the standard output) and give it up. 0 or a negative errno. */
int json_file_write(const char *path, json_t *root);

#endif
