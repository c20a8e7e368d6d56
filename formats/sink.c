/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/sink.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SINK_BYTES = 1 << 20 };

int sink_open(struct sink *sink, const char *path)
{
    *sink = (struct sink){0};
    sink->buffer = memory_zeroed(SINK_BYTES);
    if (!sink->buffer)
        return -ENOMEM;
    return store_draft(path, &sink->file);
}

static int flush(struct sink *sink)
{
    assert(sink->used <= SINK_BYTES);
    int code = store_write_at(sink->file, sink->buffer, sink->used, sink->written_bytes);

    if (code == 0) {
        sink->written_bytes += sink->used;
        sink->used = 0;
    }
    return code;
}

int sink_write(struct sink *sink, const void *bytes, size_t count)
{
    int code = 0;

    assert(sink->buffer && sink->used <= SINK_BYTES);
    if (count > SINK_BYTES - sink->used)
        code = flush(sink);
    if (code == 0 && count >= SINK_BYTES) {
        code = store_write_at(sink->file, bytes, count, sink->written_bytes);
        if (code == 0)
            sink->written_bytes += count;
    } else if (code == 0 && count > 0) {
        memcpy(sink->buffer + sink->used, bytes, count);
        sink->used += count;
    }
    return code;
}

int sink_printf(struct sink *sink, const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line)
        return fail(EOVERFLOW, "%s: a line is too long", sink->file->path);
    return sink_write(sink, line, (size_t)length);
}

int sink_close(struct sink *sink, bool commit)
{
    int code = 0;

    if (sink->file)
        code = store_settle(sink->file, commit ? flush(sink) : -ECANCELED);
    free(sink->buffer);
    sink->buffer = NULL;
    sink->file = NULL;
    return commit ? code : 0;
}
