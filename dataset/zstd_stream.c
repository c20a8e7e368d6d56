/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/zstd_stream.h"

#include "base/fail.h"

#include <errno.h>
#include <zstd.h>

int zstd_stream_begin(struct zstd_stream **stream)
{
    if (!*stream)
        *stream = (struct zstd_stream *)ZSTD_createDStream();
    if (!*stream || ZSTD_isError(ZSTD_initDStream((ZSTD_DStream *)*stream)))
        return fail(ENOMEM, "out of memory for a zstd stream");
    return 0;
}

void zstd_stream_free(struct zstd_stream *stream)
{
    ZSTD_freeDStream((ZSTD_DStream *)stream);
}

const char *zstd_stream_step(struct zstd_stream *stream, const uint8_t *from, size_t avail,
                             size_t *used, uint8_t *to, size_t count, size_t *made, bool *complete)
{
    ZSTD_inBuffer in = {from, avail, 0};
    ZSTD_outBuffer out = {to, count, 0};
    size_t left = ZSTD_decompressStream((ZSTD_DStream *)stream, &out, &in);

    *used = in.pos;
    *made = out.pos;
    *complete = left == 0;
    return ZSTD_isError(left) ? ZSTD_getErrorName(left) : NULL;
}
