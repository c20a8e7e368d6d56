/* SPDX-License-Identifier: Apache-2.0
 *
 * procfile: a file below /proc or /sys, kept open and re-read for each sample without allocating.
 * One thread per file.
 */
#ifndef IOBENCH_TELEMETRY_PROCFILE_H
#define IOBENCH_TELEMETRY_PROCFILE_H

#include "telemetry/text.h"

/* Roots of the kernel's files. A container sees less than its host; the host's /sys, bind-mounted
 * elsewhere, shows the rest. */
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

/* Open, and read once to size the buffer, with room for growth. Returns 0, or a negative errno with
 * a reason. Close in either case. */
int procfile_open(struct procfile *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void procfile_close(struct procfile *file); /* a zeroed one is fine */

/* Re-read; text that no longer fits is cut at a line end. Returns 0, or a negative errno without a
 * reason: -ENODEV if the device is gone. */
int procfile_read(struct procfile *file, struct text *text);

/* Read a small file into text, without its last newline. Returns false if it does not exist. */
bool procfile_peek(char *text, size_t text_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
