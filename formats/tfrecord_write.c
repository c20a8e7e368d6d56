/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/tfrecord_write.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/index_file.h"
#include "formats/tfrecord_frame.h"

#include <errno.h>
#include <stdlib.h>

enum { PACKED_BYTES = 64 * 1024 };

/* Compress the input and write the output; at the end of the shard, flush it. */
static int deflate_out(struct tfrecord_writer *writer, const void *bytes, size_t count, int flush)
{
    z_stream *stream = &writer->stream;
    int result, code = 0;

    stream->next_in = (Bytef *)(uintptr_t)bytes;
    stream->avail_in = (uInt)count;
    do {
        stream->next_out = writer->packed;
        stream->avail_out = PACKED_BYTES;
        result = deflate(stream, flush);
        if (result == Z_STREAM_ERROR)
            return fail(EIO, "%s: deflate failed", writer->sink.draft.path);
        code = sink_write(&writer->sink, writer->packed, PACKED_BYTES - stream->avail_out);
    } while (code == 0 && (flush == Z_FINISH ? result != Z_STREAM_END : stream->avail_out == 0));
    return code;
}

static int put(struct tfrecord_writer *writer, const void *bytes, size_t count)
{
    enum { MOST = 1 << 30 }; /* zlib takes an unsigned int */
    const uint8_t *at = bytes;
    int code = 0;

    if (!writer->packed)
        return sink_write(&writer->sink, bytes, count);
    while (code == 0 && count > 0) {
        size_t part = count < MOST ? count : MOST;
        code = deflate_out(writer, at, part, Z_NO_FLUSH);
        at += part;
        count -= part;
    }
    return code;
}

static int open_stream(struct tfrecord_writer *writer, int compression)
{
    /* zlib.h: 16 more selects a gzip wrapper. */
    int window_bits = compression == TFRECORD_GZIP ? MAX_WBITS + 16 : MAX_WBITS;

    writer->packed = memory_zeroed(PACKED_BYTES);
    if (!writer->packed)
        return -ENOMEM;
    writer->stream_open = deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                       window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    return writer->stream_open ? 0 : fail(ENOMEM, "out of memory to compress");
}

char *tfrecord_index_path(const char *path)
{
    static const char *const extensions[] = {".tfrecord", ".tfrecords", NULL};

    return index_file_path(path, extensions);
}

int tfrecord_shard_open(void *state, const void *settings, const char *path)
{
    const struct tfrecord_settings *tfrecord = settings;
    struct tfrecord_writer *writer = state;

    writer->keys = tfrecord_keys(settings);
    if (tfrecord->idx && tfrecord->compression != TFRECORD_PLAIN)
        return fail(EINVAL, "%s: a compressed shard cannot use an .idx file; set idx=no", path);
    writer->head = memory_zeroed(EXAMPLE_HEAD_BYTES);
    int code = writer->head ? sink_open(&writer->sink, path) : -ENOMEM;
    if (code == 0 && tfrecord->compression != TFRECORD_PLAIN)
        code = open_stream(writer, tfrecord->compression);
    if (code == 0 && tfrecord->idx) {
        char *beside = tfrecord_index_path(path);
        code = beside ? sink_open(&writer->idx, beside) : -ENOMEM;
        free(beside);
    }
    return code;
}

int tfrecord_shard_append(void *state, const struct sample *sample)
{
    struct tfrecord_writer *writer = state;
    uint8_t frame[TFRECORD_HEAD_BYTES], tail[TFRECORD_TAIL_BYTES];
    uint64_t offset = sink_offset(&writer->sink);

    if (sample->encoding != SAMPLE_ENCODED)
        return fail(EINVAL, "%s: an Example holds an encoded image, not bare pixels",
                    writer->sink.draft.path);
    int head_bytes = example_head(&writer->keys, sample, writer->head);
    if (head_bytes < 0)
        return head_bytes;
    uint64_t length = (uint64_t)head_bytes + sample->image_bytes;
    bytes_put_le64(frame, length);
    bytes_put_le32(frame + 8, tfrecord_mask(crc32c(0, frame, 8)));
    uint32_t crc = crc32c(0, writer->head, (size_t)head_bytes);
    bytes_put_le32(tail, tfrecord_mask(crc32c(crc, sample->image, sample->image_bytes)));
    int code = put(writer, frame, sizeof frame);
    if (code == 0)
        code = put(writer, writer->head, (size_t)head_bytes);
    if (code == 0)
        code = put(writer, sample->image, sample->image_bytes);
    if (code == 0)
        code = put(writer, tail, sizeof tail);
    if (code == 0 && writer->idx.buffer)
        code = sink_printf(&writer->idx, "%llu %llu\n", (unsigned long long)offset,
                           (unsigned long long)(length + TFRECORD_FRAME_BYTES));
    return code;
}

/* Commit the .idx first, so that a shard that exists has its index. */
int tfrecord_shard_close(void *state, bool commit)
{
    struct tfrecord_writer *writer = state;
    int code = commit && writer->stream_open ? deflate_out(writer, NULL, 0, Z_FINISH) : 0;
    int idx_code = sink_close(&writer->idx, commit && code == 0);

    code = code ? code : idx_code;
    int sink_code = sink_close(&writer->sink, commit && code == 0);
    if (writer->stream_open)
        deflateEnd(&writer->stream);
    free(writer->packed);
    free(writer->head);
    return code ? code : sink_code;
}
