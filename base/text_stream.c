/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text_stream.h"

#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { ROOM_LEAST = 4096 };

static ssize_t append_text(void *cookie, const char *bytes, size_t count)
{
    struct text_stream *stream = cookie;

    if (count >= stream->room - stream->bytes) {
        const size_t room = 2 * (stream->bytes + count) + ROOM_LEAST;
        char *larger = realloc(stream->text, room);
        if (!larger)
            return 0; /* an error in fopencookie()'s terms */
        stream->text = larger;
        stream->room = room;
    }
    memcpy(stream->text + stream->bytes, bytes, count);
    stream->bytes += count;
    stream->text[stream->bytes] = '\0';
    return (ssize_t)count;
}

int text_stream_open(struct text_stream *stream)
{
    *stream = (struct text_stream){0};
    stream->stream = fopencookie(stream, "w", (cookie_io_functions_t){.write = append_text});
    return stream->stream ? 0 : fail(ENOMEM, "out of memory for a text");
}

int text_stream_flush(struct text_stream *stream)
{
    if (!stream->stream || fflush(stream->stream) || ferror(stream->stream) ||
        (!stream->text && !(stream->text = calloc(1, 1))))
        return fail(ENOMEM, "out of memory for a text");
    return 0;
}

int text_stream_take(struct text_stream *stream, char **text, size_t *bytes)
{
    int code = text_stream_flush(stream);

    *text = code ? NULL : stream->text;
    *bytes = code ? 0 : stream->bytes;
    if (code == 0)
        stream->text = NULL;
    text_stream_close(stream);
    return code;
}

void text_stream_close(struct text_stream *stream)
{
    if (stream->stream)
        fclose(stream->stream);
    free(stream->text);
    *stream = (struct text_stream){0};
}
