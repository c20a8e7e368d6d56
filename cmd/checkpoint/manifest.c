/* SPDX-License-Identifier: Apache-2.0
 * The manifest of a checkpoint:
 *
 *     iobench checkpoint 1
 *     model 8b
 *     number 3
 *     seed 1
 *     ranks 8
 *     layout sharded            or: single
 *     chunk 33554432
 *     file weights-000000.bin 0 2007502848      name, rank, bytes; then its checksums:
 *     crc 0a1b2c3d 4e5f6071 ...                 at most 8 a line
 *     end 8899aabb              CRC-32C of all lines before this one */
#include "cmd/checkpoint/snapshot.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKSUMS_A_LINE = 8, CHUNK_BYTES_MIN = 4096, CHUNK_BYTES_MAX = 1 << 30 };

static const char end_key[] = "end ";

static uint64_t chunks_of(uint64_t bytes, uint32_t chunk_bytes)
{
    return (bytes + chunk_bytes - 1) / chunk_bytes;
}

static int add_file(struct snapshot *snapshot, const char *name, uint32_t rank, uint64_t bytes)
{
    if (memory_room(&snapshot->files, snapshot->file_count, sizeof *snapshot->files,
                    "files of a checkpoint"))
        return -ENOMEM;
    struct snapshot_file *file = &snapshot->files[snapshot->file_count++];
    *file = (struct snapshot_file){.rank = rank,
                                   .bytes = bytes,
                                   .offset = snapshot->is_single ? snapshot->bytes : 0,
                                   .first_chunk = snapshot->chunk_count};
    snprintf(file->name, sizeof file->name, "%s", name);
    snapshot->bytes += bytes;
    snapshot->chunk_count += chunks_of(bytes, snapshot->chunk_bytes);
    return 0;
}

int snapshot_check_size(const struct model_files *files, uint32_t chunk_bytes)
{
    enum { HEAD_BYTES = 256, FILE_BYTES = 96, SUM_BYTES = 9, LINE_BYTES = 4 }; /* each at most */
    uint64_t bytes = HEAD_BYTES;
    char all[32], each[32];

    for (uint32_t i = 0; i < files->count; i++) {
        const uint64_t chunks = chunks_of(files->list[i].bytes, chunk_bytes);
        bytes += FILE_BYTES + chunks * SUM_BYTES + (chunks / CHECKSUMS_A_LINE + 1) * LINE_BYTES;
    }
    return bytes <= SNAPSHOT_MANIFEST_BYTES_MAX
               ? 0
               : fail(EINVAL,
                      "--chunk %s: the checksums of %s in such chunks are too many to be read "
                      "again: choose larger ones",
                      bytes_text(chunk_bytes, each, sizeof each),
                      bytes_text(files->bytes, all, sizeof all));
}

int snapshot_plan(struct snapshot *snapshot, const struct model_files *files, uint32_t chunk_bytes,
                  bool is_single)
{
    int code = 0;

    *snapshot = (struct snapshot){
        .ranks = files->ranks, .chunk_bytes = chunk_bytes, .is_single = is_single};
    for (uint32_t i = 0; i < files->count && code == 0; i++)
        code = add_file(snapshot, files->list[i].name, files->list[i].rank, files->list[i].bytes);
    if (code)
        return code;
    snapshot->checksums = memory_array(snapshot->chunk_count, sizeof *snapshot->checksums);
    return snapshot->checksums ? 0 : -ENOMEM;
}

void snapshot_release(struct snapshot *snapshot)
{
    free(snapshot->files);
    free(snapshot->checksums);
    *snapshot = (struct snapshot){0};
}

uint64_t snapshot_key(const struct snapshot *snapshot)
{
    return random_hash(snapshot->seed, snapshot->number, 0);
}

char *snapshot_text(const struct snapshot *snapshot)
{
    struct text_stream text;

    if (text_stream_open(&text)) {
        text_stream_close(&text);
        return NULL;
    }
    fprintf(text.stream,
            "iobench checkpoint 1\nmodel %s\nnumber %u\nseed %" PRIu64
            "\nranks %u\nlayout %s\nchunk %u\n",
            snapshot->model, snapshot->number, snapshot->seed, snapshot->ranks,
            snapshot->is_single ? "single" : "sharded", snapshot->chunk_bytes);
    for (uint32_t i = 0; i < snapshot->file_count; i++) {
        const struct snapshot_file *file = &snapshot->files[i];
        const uint64_t chunks = chunks_of(file->bytes, snapshot->chunk_bytes);
        fprintf(text.stream, "file %s %u %" PRIu64, file->name, file->rank, file->bytes);
        for (uint64_t k = 0; k < chunks; k++)
            fprintf(text.stream, "%s %08x", k % CHECKSUMS_A_LINE ? "" : "\ncrc",
                    snapshot->checksums[file->first_chunk + k]);
        fputc('\n', text.stream);
    }
    char *copy = NULL;
    size_t bytes;
    if (text_stream_flush(&text)) {
        text_stream_close(&text);
        return NULL;
    }
    fprintf(text.stream, "%s%08x\n", end_key, crc32c(0, text.text, text.bytes));
    return text_stream_take(&text, &copy, &bytes) ? NULL : copy;
}

/* ---- parsing ---- */

/* Check the last line and remove it. */
static int check_end(char *text, size_t bytes, const char *path)
{
    const size_t length = sizeof end_key - 1 + 8 + 1;
    uint32_t sum;
    char newline;

    if (bytes < length || strlen(text) != bytes ||
        strncmp(text + bytes - length, end_key, sizeof end_key - 1) != 0 ||
        sscanf(text + bytes - length + sizeof end_key - 1, "%8x%c", &sum, &newline) != 2 ||
        newline != '\n')
        return fail(EBADMSG, "%s: the manifest of the checkpoint is incomplete", path);
    if (crc32c(0, text, bytes - length) != sum)
        return fail(EBADMSG, "%s: the manifest of the checkpoint is damaged: its CRC is wrong",
                    path);
    text[bytes - length] = '\0';
    return 0;
}

static bool parse_head(struct snapshot *snapshot, char **lines)
{
    char layout[16];
    int used = -1;

    if (sscanf(*lines,
               "iobench checkpoint 1\nmodel %31[^\n]\nnumber %u\nseed %" SCNu64
               "\nranks %u\nlayout %15[a-z]\nchunk %u%n",
               snapshot->model, &snapshot->number, &snapshot->seed, &snapshot->ranks, layout,
               &snapshot->chunk_bytes, &used) != 6 ||
        used < 0)
        return false;
    snapshot->is_single = strcmp(layout, "single") == 0;
    *lines += used;
    return (snapshot->is_single || strcmp(layout, "sharded") == 0) && snapshot->ranks > 0 &&
           snapshot->ranks <= MODEL_RANKS_MAX && snapshot->chunk_bytes >= CHUNK_BYTES_MIN &&
           snapshot->chunk_bytes <= CHUNK_BYTES_MAX &&
           snapshot->chunk_bytes % MODEL_BLOCK_BYTES == 0 && *(*lines)++ == '\n';
}

static int parse_file(struct snapshot *snapshot, const char *line)
{
    char name[32];
    uint32_t rank;
    uint64_t bytes;
    int used = -1;

    if (sscanf(line, "file %31[a-z0-9.-] %" SCNu32 " %" SCNu64 "%n", name, &rank, &bytes, &used) !=
            3 ||
        line[used] || !model_is_file_name(name) || rank >= snapshot->ranks || bytes == 0 ||
        bytes % MODEL_BLOCK_BYTES || bytes > UINT64_MAX / 4 - snapshot->bytes)
        return -EBADMSG;
    return add_file(snapshot, name, rank, bytes);
}

/* Append the checksums of a line; *count: checksums so far. */
static int parse_checksums(struct snapshot *snapshot, const char *line, uint64_t *count)
{
    for (line += 3; *line; line += 9) {
        char digits[9];
        if (line[0] != ' ' || strspn(line + 1, "0123456789abcdef") < 8 ||
            (line[9] && line[9] != ' '))
            return -EBADMSG;
        snprintf(digits, sizeof digits, "%.8s", line + 1);
        if (memory_room(&snapshot->checksums, *count, sizeof *snapshot->checksums, "checksums"))
            return -ENOMEM;
        snapshot->checksums[(*count)++] = (uint32_t)strtoul(digits, NULL, 16);
    }
    return 0;
}

int snapshot_parse(struct snapshot *snapshot, char *text, size_t bytes, const char *path)
{
    uint64_t count = 0;
    char *rest = NULL;

    *snapshot = (struct snapshot){0};
    int code = check_end(text, bytes, path);
    if (code)
        return code;
    if (!parse_head(snapshot, &text))
        code = -EBADMSG;
    for (char *line = code ? NULL : strtok_r(text, "\n", &rest); line && code == 0;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "file ", 5) == 0 && count == snapshot->chunk_count)
            code = parse_file(snapshot, line);
        else if (strncmp(line, "crc ", 4) == 0)
            code = parse_checksums(snapshot, line, &count);
        else
            code = -EBADMSG;
        if (code == 0 && count > snapshot->chunk_count)
            code = -EBADMSG;
    }
    if (code == 0 && (count != snapshot->chunk_count || snapshot->file_count == 0))
        code = -EBADMSG;
    return code == -EBADMSG ? fail(EBADMSG, "%s: not the manifest of a checkpoint", path) : code;
}
