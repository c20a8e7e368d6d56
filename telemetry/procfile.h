/* SPDX-License-Identifier: Apache-2.0
 *
 * procfile: a file below /proc or /sys that is kept open and read again for each sample, without
 * allocating. One thread a file.
 */
#ifndef IOBENCH_TELEMETRY_PROCFILE_H
#define IOBENCH_TELEMETRY_PROCFILE_H

#include "telemetry/text.h"

/* Where the kernel's files are. A container sees less than its host; the host's /sys, bound to
 * another place, shows the rest. */
struct telemetry_roots {
    const char *proc; /* "/proc" */
    const char *sys;  /* "/sys" */
};

extern const struct telemetry_roots telemetry_roots_usual;

struct procfile {
    int fd; /* -1: none */
    char *buffer;
    size_t buffer_bytes;
};

/* Open and read once, to see how large it is; some room is kept for growth. 0, or a negative
 * errno with a reason. Close it in either case. */
int procfile_open(struct procfile *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void procfile_close(struct procfile *file); /* a zeroed one is fine */

/* Read it anew. What no longer fits is cut off at a line. 0, or a negative errno without a reason:
 * -ENODEV when the device went away. */
int procfile_read(struct procfile *file, struct text *text);

/* A small file read once into text, without its last newline; false when it is not there. */
bool procfile_peek(char *text, size_t text_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
