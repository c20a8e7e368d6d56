/* SPDX-License-Identifier: Apache-2.0
 *
 * stream: outputs that the user names and that are no files: /dev/stdout, a pipe, a terminal.
 */
#ifndef IOBENCH_BASE_STREAM_H
#define IOBENCH_BASE_STREAM_H

#include <stdbool.h>

bool file_is_stream(const char *path);
/* To write to. A FIFO that nobody reads: an error after ten seconds. A descriptor or a negative
 * errno with a reason. */
int file_open_stream(const char *path);

#endif
