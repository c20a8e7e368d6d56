/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/inflate.h"

#include "base/fail.h"

#include <errno.h>
#include <zstd.h>

static int begin_stream(void **stream)
{
    if (!*stream)
        *stream = ZSTD_createDStream();
    if (!*stream || ZSTD_isError(ZSTD_initDStream(*stream)))
        return fail(ENOMEM, "out of memory for a zstd stream");
    return 0;
}

static void free_stream(void *stream)
{
    ZSTD_freeDStream(stream);
}

static const char *step_stream(void *stream, const uint8_t *from, size_t avail, size_t *used,
                               uint8_t *to, size_t count, size_t *made, bool *complete)
{
    ZSTD_inBuffer in = {from, avail, 0};
    ZSTD_outBuffer out = {to, count, 0};
    size_t left = ZSTD_decompressStream(stream, &out, &in);

    *used = in.pos;
    *made = out.pos;
    *complete = left == 0;
    return ZSTD_isError(left) ? ZSTD_getErrorName(left) : NULL;
}

const struct zstd_ops zstd_stream = {begin_stream, free_stream, step_stream};
