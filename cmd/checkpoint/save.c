/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/save.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"

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

static const uint64_t MEASURE_NS = 25000000, LOOK_NS = 100000000, START_NAP_NS = 20000,
                      DRAIN_NS = UINT64_C(10000000000);

/* ---- what a checkpoint holds ---- */

void content_fill(void *chunk, size_t bytes, uint64_t seed)
{
    struct random random = random_start(seed);
    uint64_t *words = chunk;

    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = random_next(&random);
}

/* Block by block, so the checksum finds the stamped block in the CPU cache. */
uint32_t content_stamp(void *chunk, size_t bytes, uint64_t key, uint32_t file, uint64_t offset)
{
    uint8_t *at = chunk;
    uint32_t crc = 0;

    assert(bytes % MODEL_BLOCK_BYTES == 0);
    for (size_t i = 0; i < bytes; i += MODEL_BLOCK_BYTES) {
        uint64_t stamp = random_hash(key, file, offset + i);
        memcpy(at + i, &stamp, sizeof stamp);
        crc = crc32c(crc, at + i, MODEL_BLOCK_BYTES);
    }
    return crc;
}

void content_measure(void *chunk, size_t bytes, struct content_ceiling *ceiling)
{
    uint64_t count = 0, start_ns = clock_now_ns(), now_ns = start_ns;

    for (; now_ns - start_ns < MEASURE_NS; now_ns = clock_now_ns())
        content_stamp(chunk, bytes, 0, 0, count++ * bytes);
    ceiling->made_per_s = (double)(count * bytes) / ((double)(now_ns - start_ns) * 1e-9);
    start_ns = now_ns;
    volatile uint32_t sum = 0; /* prevents the loop from being optimised away */
    for (count = 0; now_ns - start_ns < MEASURE_NS; now_ns = clock_now_ns(), count++)
        sum = sum + crc32c(0, chunk, bytes);
    ceiling->checked_per_s = (double)(count * bytes) / ((double)(now_ns - start_ns) * 1e-9);
}

/* ---- a writer ---- */

static void close_engine(struct writer *writer)
{
    if (writer->is_held) {
        memory_keep(writer->state);
    } else if (writer->state) {
        writer->ops->close(writer->state);
        free(writer->state);
    }
    writer->state = NULL;
}

int writer_open(struct writer *writer, const struct plugin *plugin,
                const struct writer_config *config)
{
    const struct plugin *const only[] = {plugin, NULL};
    int code = 0, refusal = 0;

    *writer = (struct writer){.config = *config};
    writer->requests = memory_array(config->depth, sizeof *writer->requests);
    if (!writer->requests)
        return -ENOMEM;
    /* The best that works; the engine text names the refused one and the reason. */
    for (const struct plugin *const *row = plugin ? only : writer_registry; *row; row++) {
        writer->ops = (const struct writer_ops *)(const void *)*row; /* its first member */
        writer->state = memory_zeroed((*row)->state_size);
        code = writer->state ? writer->ops->open(writer->state, &writer->config, writer->engine)
                             : -ENOMEM;
        const size_t length = strlen(writer->engine);
        if (refusal)
            snprintf(writer->engine + length, sizeof writer->engine - length,
                     " (writer %s is refused here: %s)", row[-1]->name, fail_errno_text(refusal));
        if (code == 0)
            return 0;
        if (row[1])
            close_engine(writer);
        refusal = code;
    }
    return fail(code, "--writer %s: refused here: %s", writer->ops->plugin.name,
                fail_errno_text(code));
}

void writer_close(struct writer *writer)
{
    const uint64_t start_ns = clock_now_ns();
    struct writer_completion done;
    int found = 0;

    while (writer->state && writer->in_flight && found >= 0 &&
           clock_now_ns() - start_ns < DRAIN_NS) {
        found = writer->ops->reap(writer->state, &done, LOOK_NS);
        writer->in_flight -= found > 0;
    }
    writer->is_held = writer->in_flight > 0;
    close_engine(writer);
    free(writer->requests);
    writer->requests = NULL;
}

void writer_write(struct writer *writer, uint32_t index, int fd, uint32_t bytes, uint64_t offset)
{
    struct writer_request *request = &writer->requests[index];

    assert(index < writer->config.depth && writer->in_flight < writer->config.depth);
    *request = (struct writer_request){
        .fd = fd, .index = index, .bytes = bytes, .offset = offset, .submit_ns = clock_now_ns()};
    writer->in_flight++;
    writer->ops->submit(writer->state, request);
}

int writer_wait(struct writer *writer, uint64_t wait_ns, const char *path)
{
    struct writer_completion done;
    int found = writer->ops->reap(writer->state, &done, wait_ns);

    if (found < 0)
        return found;
    if (found) {
        struct writer_request *request = &writer->requests[done.index];
        assert(done.index < writer->config.depth && writer->in_flight > 0);
        int result = done.result;
        if (result == -EAGAIN || result == -EINTR)
            result = 0;
        else if (result == 0)
            result = -ENOSPC;
        if (result < 0) {
            writer->in_flight--;
            return fail(result, "%s: offset %llu: cannot write: %s", path,
                        (unsigned long long)(request->offset + request->from),
                        fail_errno_text(result));
        }
        request->from += (uint32_t)result;
        if (request->from < request->bytes) {
            writer->ops->submit(writer->state, request);
            return -EAGAIN;
        }
        writer->in_flight--;
        histogram_add(&writer->latency_ns, done.ended_ns - request->submit_ns);
        return (int)done.index;
    }
    const uint64_t now_ns = clock_now_ns(), timeout_ns = writer->config.timeout_ns;
    for (uint32_t i = 0; timeout_ns && i < writer->config.depth; i++) {
        const struct writer_request *request = &writer->requests[i];
        if (request->from < request->bytes && now_ns - request->submit_ns > timeout_ns)
            return fail(ETIMEDOUT, "%s: storage not responding: a write has taken %.0f s", path,
                        (double)(now_ns - request->submit_ns) * 1e-9);
    }
    return -EAGAIN;
}

/* ---- buffers ---- */

int rank_buffers_create(struct rank_buffers *buffers)
{
    const uint64_t count = (uint64_t)buffers->ranks * buffers->depth;

    buffers->all = memory_array(count, sizeof *buffers->all);
    if (!buffers->all)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++) {
        buffers->all[i].iov_len = buffers->chunk_bytes;
        buffers->all[i].iov_base = memory_pages(buffers->chunk_bytes);
        if (!buffers->all[i].iov_base)
            return -ENOMEM;
    }
    return 0;
}

void rank_buffers_destroy(struct rank_buffers *buffers)
{
    const uint64_t count = buffers->all ? (uint64_t)buffers->ranks * buffers->depth : 0;

    if (buffers->is_held) {
        memory_keep(buffers->all);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        free(buffers->all[i].iov_base);
    free(buffers->all);
    buffers->all = NULL;
}

struct iovec *rank_buffers_of(const struct rank_buffers *buffers, uint64_t number)
{
    assert(number < buffers->ranks);
    return buffers->all + number * buffers->depth;
}

/* ---- the start ---- */

void rank_team_wait(struct rank_team *team)
{
    if (countdown_done(&team->missing, 1)) {
        team->start_ns = clock_now_ns();
        flag_set(&team->is_given);
    }
    while (!flag_get(&team->is_given) && !flag_get(&team->stopped) && !flag_get(&stop_asked))
        clock_sleep_ns(START_NAP_NS);
}

uint64_t rank_team_elapsed_ns(const struct rank_team *team)
{
    return flag_get(&team->is_given) ? clock_now_ns() - team->start_ns : 0;
}

static void stop(void *context)
{
    flag_set(&((struct rank_team *)context)->stopped);
}

int rank_team_run(struct rank_team *team, struct rank_buffers *buffers, const char *name,
                  int (*act)(void *team, struct workers *workers, uint64_t number))
{
    const struct workers_job job = {name, act, stop, NULL, team};

    *team = (struct rank_team){0};
    countdown_set(&team->missing, buffers->ranks);
    int code = buffers->ranks ? workers_run(&job, buffers->ranks) : 0;
    buffers->is_held |= flag_get(&team->held);
    return code;
}

/* ---- a rank ---- */

/* Write the files of a rank, and sync them. */
static int save_rank(void *context, struct workers *workers, uint64_t number)
{
    struct save *save = context;
    const struct snapshot *snapshot = save->snapshot;
    struct rank_figures *figures = &save->figures[number];
    const struct writer_config config = {.buffers = rank_buffers_of(save->buffers, number),
                                         .depth = save->buffers->depth,
                                         .direct = save->direct,
                                         .timeout_ns = save->timeout_ns};
    const uint64_t key = random_hash(snapshot->seed, snapshot->number, 0);
    uint32_t *idle = memory_array(config.depth, sizeof *idle), idle_count = 0; /* buffers */
    struct folder draft = {.fd = -1};
    struct writer writer = {0};

    (void)workers;
    *figures = (struct rank_figures){.line.rank = save->first_rank + (uint32_t)number};
    int code = snapshot_open_draft(save->store, snapshot->number, &draft);
    if (code == 0 && !idle)
        code = -ENOMEM;
    for (; code == 0 && idle_count < config.depth; idle_count++)
        idle[idle_count] = idle_count;
    if (code == 0)
        code = writer_open(&writer, save->writer, &config);
    rank_team_wait(&save->team);
    for (uint32_t i = 0; i < snapshot->file_count && code == 0; i++) {
        const struct snapshot_file *file = &snapshot->files[i];
        if (file->rank != figures->line.rank)
            continue;
        const char *name = snapshot->is_single ? SNAPSHOT_SINGLE : file->name;
        const int fd = snapshot->is_single ? folder_open_file(&draft, name, O_RDWR, NULL)
                                           : folder_create_file(&draft, name);
        uint64_t at = 0;
        if (fd < 0) {
            code = fd;
            break;
        }
        /* Preallocate: direct writes that extend a file are serialised, and a full file system
         * fails here. Not every file system supports the call. */
        if (fallocate(fd, 0, (off_t)file->offset, (off_t)file->bytes) && errno != EOPNOTSUPP &&
            errno != ENOSYS && errno != EINVAL)
            code = fail(errno, "%s/%s: cannot allocate %llu bytes: %s", draft.path, name,
                        (unsigned long long)file->bytes, fail_errno_text(errno));
        else if (save->direct && fcntl(fd, F_SETFL, O_DIRECT))
            code = fail(errno, "%s/%s: --direct: this file system cannot bypass the page cache: %s",
                        draft.path, name, fail_errno_text(errno));
        while (code == 0 && (at < file->bytes || writer.in_flight)) {
            const bool is_full = at >= file->bytes || idle_count == 0;
            int index = -EAGAIN;
            if (flag_get(&save->team.stopped) || flag_get(&stop_asked)) {
                code = fail(EINTR, "interrupted");
                break;
            }
            /* A write has completed when it is found to have: look for all of them before time is
             * spent on the next chunk. */
            while (writer.in_flight) {
                index = writer_wait(&writer, is_full ? LOOK_NS : 0, draft.path);
                if (index >= 0)
                    idle[idle_count++] = (uint32_t)index;
                if (index < 0 || is_full)
                    break;
            }
            if (index < 0 && index != -EAGAIN)
                code = index;
            if (code || is_full)
                continue;
            const uint64_t left = file->bytes - at;
            const uint32_t bytes =
                left < snapshot->chunk_bytes ? (uint32_t)left : snapshot->chunk_bytes;
            assert(idle_count > 0);
            const uint32_t free = idle[--idle_count];
            snapshot->checksums[file->first_chunk + at / snapshot->chunk_bytes] =
                content_stamp(config.buffers[free].iov_base, bytes, key, i, at);
            writer_write(&writer, free, fd, bytes, file->offset + at);
            at += snapshot->chunk_bytes;
        }
        if (code == 0 && save->sync) {
            const uint64_t start_ns = clock_now_ns();
            if (fsync(fd))
                code =
                    fail(errno, "%s/%s: cannot sync: %s", draft.path, name, fail_errno_text(errno));
            else {
                figures->line.sync_ns += clock_now_ns() - start_ns;
                figures->line.synced_bytes += file->bytes;
            }
        }
        if (code) /* the kernel may still write to it */
            writer_close(&writer);
        if (close(fd) && code == 0)
            code = fail(errno, "%s/%s: cannot close: %s", draft.path, name, fail_errno_text(errno));
        figures->line.bytes += code ? 0 : file->bytes;
    }
    figures->line.wall_ns = rank_team_elapsed_ns(&save->team);
    figures->latency_ns = writer.latency_ns;
    if (number == 0)
        snprintf(save->engine, sizeof save->engine, "%s", writer.engine);
    writer_close(&writer);
    if (writer.is_held)
        flag_set(&save->team.held);
    folder_close(&draft);
    free(idle);
    return code;
}

int save_run(void *context)
{
    struct save *save = context;

    return rank_team_run(&save->team, save->buffers, "checkpoint", save_rank);
}
