/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/snapshot.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text_stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The manifest of a checkpoint:
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
    assert(snapshot->chunk_bytes > 0 && strlen(name) < sizeof snapshot->files->name);
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

int snapshot_parse(struct snapshot *snapshot, char *text, size_t bytes, const char *path)
{
    const size_t length = sizeof end_key - 1 + 8 + 1;
    char layout[16], newline, *rest = NULL;
    uint64_t count = 0; /* checksums so far */
    uint32_t sum;
    int code = 0, used = -1;

    *snapshot = (struct snapshot){0};
    if (bytes < length || strlen(text) != bytes ||
        strncmp(text + bytes - length, end_key, sizeof end_key - 1) != 0 ||
        sscanf(text + bytes - length + sizeof end_key - 1, "%8x%c", &sum, &newline) != 2 ||
        newline != '\n')
        return fail(EBADMSG, "%s: the manifest of the checkpoint is incomplete", path);
    if (crc32c(0, text, bytes - length) != sum)
        return fail(EBADMSG, "%s: the manifest of the checkpoint is damaged: its CRC is wrong",
                    path);
    text[bytes - length] = '\0';
    if (sscanf(text,
               "iobench checkpoint 1\nmodel %31[^\n]\nnumber %u\nseed %" SCNu64
               "\nranks %u\nlayout %15[a-z]\nchunk %u%n",
               snapshot->model, &snapshot->number, &snapshot->seed, &snapshot->ranks, layout,
               &snapshot->chunk_bytes, &used) != 6 ||
        used < 0 || text[used] != '\n' ||
        (strcmp(layout, "single") != 0 && strcmp(layout, "sharded") != 0) || snapshot->ranks == 0 ||
        snapshot->ranks > MODEL_RANKS_MAX || snapshot->chunk_bytes < CHUNK_BYTES_MIN ||
        snapshot->chunk_bytes > CHUNK_BYTES_MAX || snapshot->chunk_bytes % MODEL_BLOCK_BYTES)
        code = -EBADMSG;
    snapshot->is_single = code == 0 && strcmp(layout, "single") == 0;
    for (char *line = code ? NULL : strtok_r(text + used, "\n", &rest); line && code == 0;
         line = strtok_r(NULL, "\n", &rest)) {
        char name[32], digits[9];
        uint32_t rank;
        uint64_t file_bytes;
        used = -1;
        if (strncmp(line, "file ", 5) == 0 && count == snapshot->chunk_count) {
            if (sscanf(line, "file %31[a-z0-9.-] %" SCNu32 " %" SCNu64 "%n", name, &rank,
                       &file_bytes, &used) != 3 ||
                line[used] || !model_is_file_name(name) || rank >= snapshot->ranks ||
                file_bytes == 0 || file_bytes % MODEL_BLOCK_BYTES ||
                file_bytes > UINT64_MAX / 4 - snapshot->bytes)
                code = -EBADMSG;
            else
                code = add_file(snapshot, name, rank, file_bytes);
        } else if (strncmp(line, "crc ", 4) == 0) {
            for (line += 3; *line && code == 0; line += 9) {
                if (line[0] != ' ' || strspn(line + 1, "0123456789abcdef") < 8 ||
                    (line[9] && line[9] != ' ')) {
                    code = -EBADMSG;
                    break;
                }
                snprintf(digits, sizeof digits, "%.8s", line + 1);
                code = memory_room(&snapshot->checksums, count, sizeof *snapshot->checksums,
                                   "checksums");
                if (code == 0)
                    snapshot->checksums[count++] = (uint32_t)strtoul(digits, NULL, 16);
            }
        } else
            code = -EBADMSG;
        if (code == 0 && count > snapshot->chunk_count)
            code = -EBADMSG;
    }
    if (code == 0 && (count != snapshot->chunk_count || snapshot->file_count == 0))
        code = -EBADMSG;
    return code == -EBADMSG ? fail(EBADMSG, "%s: not the manifest of a checkpoint", path) : code;
}

enum { NAME_BYTES = 40 };
static const char manifest_name[] = "manifest", lock_name[] = ".iobench-lock";

static const char *final_name(uint32_t number, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "checkpoint-%06u", number);
    return name;
}

static const char *draft_name(uint32_t number, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, ".checkpoint-%06u.partial", number);
    return name;
}

/* Return whether a name is a checkpoint's, and set its number. */
static bool parse_name(const char *name, bool is_draft, uint32_t *number)
{
    char again[NAME_BYTES];

    return sscanf(name, is_draft ? ".checkpoint-%6u" : "checkpoint-%6u", number) == 1 &&
           strcmp(is_draft ? draft_name(*number, again) : final_name(*number, again), name) == 0;
}

/* ---- the folder of checkpoints ---- */

static bool is_ours(void *context, const char *below, const struct stat *status)
{
    (void)context;
    if (S_ISDIR(status->st_mode))
        return below[0] == '\0';
    return model_is_file_name(below) || strcmp(below, manifest_name) == 0 ||
           strcmp(below, SNAPSHOT_SINGLE) == 0;
}

int snapshot_abandon(const struct snapshot_store *store, uint32_t number)
{
    char name[NAME_BYTES];
    int code = folder_remove_tree(&store->folder, draft_name(number, name), is_ours, NULL);

    return code == -ENOENT ? 0 : code;
}

int snapshot_open(struct snapshot_store *store, const char *path, bool writes)
{
    *store = (struct snapshot_store){.folder.fd = -1, .lock.fd = -1};
    int code = writes ? folder_make_path(path) : 0;

    if (code == 0)
        code = folder_open(&store->folder, path);
    if (code || !writes)
        return code;
    char *lock = file_join(path, lock_name);
    code = lock ? file_lock_acquire(&store->lock, lock) : -ENOMEM;
    free(lock);
    if (code)
        return code;
    struct folder_names names;
    code = folder_names_read(&names, &store->folder);
    uint32_t number;
    for (size_t i = 0; i < names.count && code == 0; i++)
        if (parse_name(names.list[i], true, &number))
            code = snapshot_abandon(store, number);
    folder_names_release(&names);
    return code;
}

void snapshot_close(struct snapshot_store *store)
{
    file_lock_release(&store->lock);
    folder_close(&store->folder);
}

int snapshot_list(const struct snapshot_store *store, uint32_t **numbers, size_t *count)
{
    struct folder_names names;
    int code = folder_names_read(&names, &store->folder);

    *count = 0;
    *numbers = code ? NULL : memory_array(names.count + 1, sizeof **numbers);
    if (code == 0 && !*numbers)
        code = -ENOMEM;
    for (size_t i = 0; i < names.count && code == 0; i++)
        if (parse_name(names.list[i], false, *numbers + *count))
            ++*count;
    folder_names_release(&names);
    return code;
}

int snapshot_next_number(const struct snapshot_store *store, uint32_t *number)
{
    uint32_t *numbers;
    size_t count;
    int code = snapshot_list(store, &numbers, &count);

    *number = code == 0 && count ? numbers[count - 1] + 1 : 1;
    free(numbers);
    if (code == 0 && *number > SNAPSHOT_NUMBER_MAX)
        code = fail(EOVERFLOW, "%s: no number is left for another checkpoint", store->folder.path);
    return code;
}

/* ---- one checkpoint ---- */

int snapshot_begin(const struct snapshot_store *store, const struct snapshot *snapshot)
{
    struct folder draft = {.fd = -1};
    char name[NAME_BYTES];
    int code = folder_make(&store->folder, draft_name(snapshot->number, name));

    if (code || !snapshot->is_single)
        return code;
    code = folder_open_below(&draft, &store->folder, name);
    int fd = code ? code : folder_create_file(&draft, SNAPSHOT_SINGLE);
    if (fd < 0)
        code = fd;
    else if (ftruncate(fd, (off_t)snapshot->bytes))
        code = fail(errno, "%s/%s: cannot set the size: %s", draft.path, SNAPSHOT_SINGLE,
                    fail_errno_text(errno));
    if (fd >= 0)
        close(fd);
    folder_close(&draft);
    return code;
}

int snapshot_open_draft(const struct snapshot_store *store, uint32_t number, struct folder *draft)
{
    char name[NAME_BYTES];

    return folder_open_below(draft, &store->folder, draft_name(number, name));
}

int snapshot_commit(const struct snapshot_store *store, const struct snapshot *snapshot)
{
    char name[NAME_BYTES], complete[NAME_BYTES];
    struct folder draft;
    int code = snapshot_open_draft(store, snapshot->number, &draft);

    if (code == 0) {
        char *text = snapshot_text(snapshot);
        int fd = text ? folder_create_file(&draft, manifest_name) : -ENOMEM;
        code = fd < 0 ? fd : file_write_at(fd, text, strlen(text), 0, draft.path);
        if (code == 0 && fsync(fd))
            code = fail(errno, "%s/%s: cannot sync: %s", draft.path, manifest_name,
                        fail_errno_text(errno));
        if (fd >= 0)
            close(fd);
        free(text);
    }
    if (code == 0)
        code = folder_sync(&draft);
    folder_close(&draft);
    if (code == 0)
        code = folder_rename(&store->folder, draft_name(snapshot->number, name), &store->folder,
                             final_name(snapshot->number, complete), false);
    return code ? code : folder_sync(&store->folder);
}

int snapshot_remove(const struct snapshot_store *store, uint32_t number)
{
    char name[NAME_BYTES], draft[NAME_BYTES];
    int code = folder_rename(&store->folder, final_name(number, name), &store->folder,
                             draft_name(number, draft), false);

    return code ? code : snapshot_abandon(store, number);
}

char *snapshot_path(const char *folder, uint32_t number, const char *name)
{
    char complete[NAME_BYTES];
    char *path = file_format_path("%s/%s/%s", folder, final_name(number, complete), name);

    if (!path)
        fail(ENOMEM, "out of memory for a path");
    return path;
}

int snapshot_load(const char *folder, uint32_t number, struct snapshot *snapshot)
{
    char *path = snapshot_path(folder, number, manifest_name), *text = NULL;
    size_t bytes;

    *snapshot = (struct snapshot){0};
    int code = path ? file_load(path, SNAPSHOT_MANIFEST_BYTES_MAX, &text, &bytes) : -ENOMEM;
    if (code == 0)
        code = snapshot_parse(snapshot, text, bytes, path);
    if (code == 0 && snapshot->number != number)
        code = fail(EBADMSG, "%s: the manifest of checkpoint %u, expected %u", path,
                    snapshot->number, number);
    free(text);
    free(path);
    return code;
}

int snapshot_list_whole(const struct snapshot_store *store, bool with_files, uint32_t **numbers,
                        size_t *count)
{
    size_t all;
    int code = snapshot_list(store, numbers, &all);

    *count = 0;
    for (size_t i = 0; i < all && code == 0; i++) {
        struct snapshot found;
        struct folder folder = {.fd = -1};
        char name[NAME_BYTES];
        bool good = snapshot_load(store->folder.path, (*numbers)[i], &found) == 0;
        if (good && with_files)
            good = folder_open_below(&folder, &store->folder, final_name(found.number, name)) == 0;
        /* Is every file there, as long as the manifest says? */
        for (uint32_t k = 0; with_files && k < found.file_count && good; k++) {
            const struct snapshot_file *file = &found.files[k];
            const char *own = found.is_single ? SNAPSHOT_SINGLE : file->name;
            struct stat status;
            good = folder_stat(&folder, own, &status) == 0 && S_ISREG(status.st_mode) &&
                   (uint64_t)status.st_size >= file->offset + file->bytes;
        }
        folder_close(&folder);
        if (good)
            (*numbers)[(*count)++] = (*numbers)[i];
        snapshot_release(&found);
    }
    return code;
}

int snapshot_sizes(const struct snapshot_store *store, uint64_t **bytes, size_t *count)
{
    uint32_t *numbers;
    int code = snapshot_list_whole(store, true, &numbers, count);

    *bytes = code ? NULL : memory_array(*count + 1, sizeof **bytes);
    if (code == 0 && !*bytes)
        code = -ENOMEM;
    for (size_t i = 0; i < *count && code == 0; i++) {
        struct folder folder;
        struct folder_names names = {0};
        char name[NAME_BYTES];
        code = folder_open_below(&folder, &store->folder, final_name(numbers[i], name));
        if (code == 0)
            code = folder_names_read(&names, &folder);
        for (size_t k = 0; k < names.count && code == 0; k++) {
            struct stat status;
            code = folder_stat(&folder, names.list[k], &status);
            (*bytes)[i] += code ? 0 : (uint64_t)status.st_blocks * 512;
        }
        folder_names_release(&names);
        folder_close(&folder);
    }
    free(numbers);
    return code;
}

int snapshot_prune(const struct snapshot_store *store, uint64_t keep)
{
    uint32_t *numbers;
    size_t count;
    int code = snapshot_list_whole(store, true, &numbers, &count);

    for (size_t i = 0; i + keep < count && code == 0; i++)
        code = snapshot_remove(store, numbers[i]);
    free(numbers);
    return code;
}
