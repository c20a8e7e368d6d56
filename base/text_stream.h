/* SPDX-License-Identifier: Apache-2.0
 *
 * text_stream: a stream into memory. Unlike glibc's open_memstream(), which silently drops what it
 * has no memory for, it fails: ferror() is set. One thread at a time.
 */
#ifndef IOBENCH_BASE_TEXT_STREAM_H
#define IOBENCH_BASE_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

struct text_stream {
    FILE *stream; /* for writing */
    char *text;   /* set by text_stream_flush(), NUL-terminated; may be NULL before */
    size_t bytes, room;
};

/* The struct must not move until closed. Both return 0 or -ENOMEM with a reason. Close after every
 * open, failed ones too. */
int text_stream_open(struct text_stream *stream);
int text_stream_flush(struct text_stream *stream);

/* Flush and close. Returns the text, for the caller to free, or NULL on failure. */
int text_stream_take(struct text_stream *stream, char **text, size_t *bytes);
void text_stream_close(struct text_stream *stream);

#endif
