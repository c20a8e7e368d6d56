/* SPDX-License-Identifier: Apache-2.0
 *
 * text_stream: a stream that writes into memory. Unlike one of open_memstream() of glibc, which
 * drops what it has no memory for, it fails then: ferror() says so. One thread at a time.
 */
#ifndef IOBENCH_BASE_TEXT_STREAM_H
#define IOBENCH_BASE_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

struct text_stream {
    FILE *stream; /* to write to */
    char *text;   /* after text_stream_flush(): what was written, and a NUL; may be NULL before */
    size_t bytes, room;
};

/* The stream must not move until it is closed. Both return 0 or -ENOMEM with a reason. Close it
 * after every open, failed ones too. */
int text_stream_open(struct text_stream *stream);
int text_stream_flush(struct text_stream *stream);

/* Flush and close; then the text is the caller's to free, NULL on failure. */
int text_stream_take(struct text_stream *stream, char **text, size_t *bytes);
void text_stream_close(struct text_stream *stream);

#endif
