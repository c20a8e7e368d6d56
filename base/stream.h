/* SPDX-License-Identifier: Apache-2.0
 *
 * stream: user-named outputs that are not files: /dev/stdout, a pipe, a terminal.
 */
#ifndef IOBENCH_BASE_STREAM_H
#define IOBENCH_BASE_STREAM_H

#include <stdbool.h>

bool file_is_stream(const char *path);
/* Open for writing. A FIFO without a reader fails after ten seconds. Returns a descriptor or a
 * negative errno with a reason. */
int file_open_stream(const char *path);

#endif
