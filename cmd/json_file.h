/* SPDX-License-Identifier: Apache-2.0
 * json_file: writes the JSON of commands other than run. Main thread. */
#ifndef IOBENCH_CMD_JSON_FILE_H
#define IOBENCH_CMD_JSON_FILE_H

#include <jansson.h>

/* Write root to path ("-": standard output) and release it. Returns 0 or -errno. */
int json_file_write(const char *path, json_t *root);

#endif
