/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/inflate.h"

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/catalog.h"
#include "dataset/store.h"

#include <assert.h>
#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

enum { INPUT_BYTES = 256 * 1024, SKIP_BYTES = 64 * 1024, FREE_BYTES = 64 << 20 };

struct inflate {
    struct store_file *file;
    uint32_t compression; /* one of SHARD_COMPRESSED */
    uint64_t file_offset; /* end of the input buffer */
    uint64_t stream_offset;
    uint64_t times;             /* largest allowed ratio of stream size to file size; 0: any */
    bool end;                   /* of the file */
    struct inflate_state state; /* its input buffer serves zstd, too */
    void *zstd;
    bool frame_complete; /* of zstd */
    uint8_t input[INPUT_BYTES], skipped[SKIP_BYTES];
};

/* Begin a member with the buffered input. */
static void begin_member(struct inflate *inflate)
{
    struct inflate_state *state = &inflate->state;
    uint8_t *next_in = state->next_in;
    uint32_t avail_in = state->avail_in;

    isal_inflate_init(state);
    state->crc_flag = inflate->compression == SHARD_GZIP ? ISAL_GZIP : ISAL_ZLIB;
    state->next_in = next_in;
    state->avail_in = avail_in;
}

int inflate_reopen(struct inflate *inflate, const char *path, uint32_t compression)
{
    store_close(inflate->file, false);
    int code = store_open(path, STORE_READ, &inflate->file);
    if (code)
        return code;
    inflate->compression = compression & SHARD_COMPRESSED;
    inflate->file_offset = inflate->stream_offset = inflate->times = 0;
    inflate->end = inflate->frame_complete = false;
    inflate->state.avail_in = 0;
    if (inflate->compression == SHARD_ZSTD)
        return zstd_present ? zstd_present->begin(&inflate->zstd)
                            : fail(ENOTSUP, "this build cannot read zstd: install libzstd-dev and "
                                            "build again");
    begin_member(inflate);
    return 0;
}

struct inflate *inflate_open(const char *path, uint32_t compression, int *code)
{
    struct inflate *inflate = memory_zeroed(sizeof *inflate);

    if (!inflate) {
        *code = -ENOMEM;
        return NULL;
    }
    *code = inflate_reopen(inflate, path, compression);
    if (*code) {
        inflate_close(inflate);
        return NULL;
    }
    return inflate;
}

void inflate_close(struct inflate *inflate)
{
    if (!inflate)
        return;
    store_close(inflate->file, false);
    if (inflate->zstd)
        zstd_present->free(inflate->zstd);
    free(inflate);
}

static int damaged(const struct inflate *inflate, const char *what)
{
    return fail(EBADMSG, "%s: offset %llu: %s", inflate->file->path,
                (unsigned long long)inflate_file_offset(inflate), what);
}

/* Inflate up to count bytes into to. Returns 0 only at the end of the stream. */
static int64_t inflate_some(struct inflate *inflate, uint8_t *to, uint32_t count)
{
    struct inflate_state *state = &inflate->state;
    const bool is_zstd = inflate->compression == SHARD_ZSTD;

    for (;;) {
        if (state->avail_in == 0 && !inflate->end) {
            const ssize_t got =
                store_read_at(inflate->file, inflate->input, INPUT_BYTES, inflate->file_offset);
            if (got < 0)
                return got;
            inflate->end = got == 0;
            inflate->file_offset += (uint64_t)got;
            state->next_in = inflate->input;
            state->avail_in = (uint32_t)got;
        }
        bool complete = is_zstd ? inflate->frame_complete : state->block_state == ISAL_BLOCK_FINISH;
        if (complete && state->avail_in == 0)
            return 0;
        if (complete && inflate->compression == SHARD_ZLIB)
            return damaged(inflate, "trailing bytes after the compressed data");
        if (complete && !is_zstd)
            begin_member(inflate);
        const uint32_t avail_in = state->avail_in;
        size_t used = avail_in, made;
        if (is_zstd) {
            const char *wrong = zstd_present->step(inflate->zstd, state->next_in, avail_in, &used,
                                                   to, count, &made, &inflate->frame_complete);
            if (wrong)
                return damaged(inflate, wrong);
            state->next_in += used;
            state->avail_in -= (uint32_t)used;
        } else {
            state->next_out = to;
            state->avail_out = count;
            int result = isal_inflate(state);
            if (state->avail_in > avail_in) /* on an error ISA-L may leave a count below zero */
                state->avail_in = avail_in;
            if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT)
                return damaged(inflate, result == ISAL_INCORRECT_CHECKSUM
                                            ? "wrong checksum of the compressed data"
                                        : result == ISAL_INVALID_WRAPPER ? "no gzip or zlib header"
                                        : result == ISAL_UNSUPPORTED_METHOD
                                            ? "compression method is not deflate"
                                        : result == ISAL_NEED_DICT ? "compressed with a dictionary"
                                                                   : "damaged compressed data");
            made = count - state->avail_out;
        }
        assert(made <= count);
        inflate->stream_offset += made;
        if (made > 0)
            return (int64_t)made;
        complete = is_zstd ? inflate->frame_complete : state->block_state == ISAL_BLOCK_FINISH;
        if (inflate->end && used == 0 && !complete)
            return damaged(inflate, "truncated compressed file");
    }
}

void inflate_limit(struct inflate *inflate, uint64_t times)
{
    inflate->times = times;
}

int64_t inflate_read(struct inflate *inflate, void *to, uint64_t count)
{
    uint64_t done = 0;

    while (done < count) {
        uint64_t wanted = count - done, most = to ? UINT32_C(1) << 30 : SKIP_BYTES;
        uint8_t *into = to ? (uint8_t *)to + done : inflate->skipped;
        int64_t made = inflate_some(inflate, into, (uint32_t)(wanted < most ? wanted : most));
        if (made < 0)
            return made;
        if (made == 0)
            break;
        const uint64_t file_bytes = inflate->file->status.bytes;
        if (inflate->times && inflate->stream_offset > FREE_BYTES &&
            inflate->stream_offset / inflate->times >= file_bytes)
            return fail(EFBIG,
                        "%s: inflates to more than %llu times its %llu bytes; max-inflation=N "
                        "allows more",
                        inflate->file->path, (unsigned long long)inflate->times,
                        (unsigned long long)file_bytes);
        done += (uint64_t)made;
    }
    return (int64_t)done;
}

uint64_t inflate_stream_offset(const struct inflate *inflate)
{
    return inflate->stream_offset;
}

uint64_t inflate_file_offset(const struct inflate *inflate)
{
    return inflate->file_offset - inflate->state.avail_in;
}
