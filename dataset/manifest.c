/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/manifest.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "dataset/catalog.h"
#include "dataset/store.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_SYNTHETIC "source synthetic" /* a line */

enum { NO_SHARD = UINT32_MAX };

static const char head_format[] =
    "iobench set 2, plan %016" PRIx64 ", draft %s, shards %" PRIu32 "\n";

/* ---- escapes ---- */

/* Write printable ASCII except space and '%' unchanged, and every other byte as %XX: a path is one
 * word. */
static void put_escaped(FILE *stream, const char *text)
{
    for (const uint8_t *byte = (const uint8_t *)text; *byte; byte++) {
        if (*byte > ' ' && *byte < 0x7f && *byte != '%')
            putc(*byte, stream);
        else
            fprintf(stream, "%%%02X", *byte);
    }
}

static int digit_of(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

/* Return the text, to free(); NULL for what put_escaped() does not write. */
static char *unescape(const char *word)
{
    char *text = malloc(strlen(word) + 1), *out = text;

    for (; text && *word; word++) {
        int byte = (uint8_t)*word;
        if (byte == '%') {
            int high = digit_of(word[1]), low = high < 0 ? -1 : digit_of(word[2]);
            byte = low < 0 ? 0 : high * 16 + low;
            word += low < 0 ? 0 : 2;
        } else if (byte <= ' ') {
            byte = 0;
        }
        if (byte == 0) {
            free(text);
            return NULL;
        }
        *out++ = (char)byte;
    }
    if (text)
        *out = '\0';
    return text;
}

/* ---- reading ---- */

/* Parser state. round numbers the blocks; only the last block of a shard is valid. */
struct parsing {
    struct manifest *manifest;
    uint32_t *rounds;      /* of each shard: its last block */
    uint32_t *file_rounds; /* of each file */
    uint32_t shard, round;
};

static bool parse_number(const char **at, uint64_t most, uint64_t *number)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *number = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0 && *number <= most;
}

static int parse_line(struct parsing *parsing, const char *line)
{
    static const char *const words[] = {"shard ", "done ", "file ", "folder ", "by ", "command "};
    enum { SHARD, DONE, FILE_LINE, FOLDER, BY, COMMAND, WORDS };
    struct manifest *manifest = parsing->manifest;
    struct manifest_file file = {.is_folder = false};
    uint64_t number;
    int word = 0;

    while (word < WORDS && strncmp(line, words[word], strlen(words[word])) != 0)
        word++;
    if (word == WORDS)
        return 0;
    const char *rest = line + strlen(words[word]);
    if (word == SHARD || word == DONE) {
        if (!parse_number(&rest, manifest->shards - 1, &number) || *rest)
            return 0;
        manifest->done[number] = word == DONE && parsing->shard == number;
        parsing->shard = word == DONE ? NO_SHARD : (uint32_t)number;
        if (word == SHARD)
            parsing->rounds[number] = ++parsing->round;
        return 0;
    }
    if (word == BY || word == COMMAND) { /* shown to users: without control characters */
        char **text = word == BY ? &manifest->maker : &manifest->command, *found = unescape(rest);
        bool is_plain = found != NULL;
        for (const char *byte = found; byte && *byte; byte++)
            is_plain &= !iscntrl((unsigned char)*byte);
        free(is_plain ? *text : found);
        if (is_plain)
            *text = found;
        return 0;
    }
    file.is_folder = word == FOLDER;
    if (parsing->shard == NO_SHARD)
        return 0;
    if (word == FILE_LINE) {
        if (!parse_number(&rest, INT64_MAX, &file.bytes) || *rest++ != ' ')
            return 0;
        const bool negative = *rest == '-';
        rest += negative;
        if (!parse_number(&rest, INT64_MAX, &number) || *rest++ != ' ')
            return 0;
        file.mtime_ns = negative ? -(int64_t)number : (int64_t)number;
    }
    assert(parsing->shard < manifest->shards);
    file.path = unescape(rest);
    file.shard = parsing->shard;
    if (!file.path || !names_below_stays(file.path)) {
        free(file.path);
        return 0;
    }
    if (memory_room(&manifest->files, manifest->file_count, sizeof *manifest->files, "files") ||
        memory_room(&parsing->file_rounds, manifest->file_count, sizeof *parsing->file_rounds,
                    "files")) {
        free(file.path);
        return -ENOMEM;
    }
    parsing->file_rounds[manifest->file_count] = parsing->round;
    manifest->files[manifest->file_count++] = file;
    return 0;
}

static bool parse_head(struct manifest *manifest, const char *line)
{
    char again[128], suffix[MANIFEST_SUFFIX_BYTES];

    if (sscanf(line, "iobench set 2, plan %16" SCNx64 ", draft %8[0-9a-z], shards %7" SCNu32,
               &manifest->plan, suffix, &manifest->shards) != 3 ||
        manifest->shards == 0 || manifest->shards > MANIFEST_SHARDS_MAX)
        return false;
    memcpy(manifest->suffix, suffix, sizeof suffix);
    /* Accept only text that manifest_head() can have written. */
    snprintf(again, sizeof again, head_format, manifest->plan, suffix, manifest->shards);
    again[strlen(again) - 1] = '\0';
    return strcmp(again, line) == 0;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct manifest_file *)a)->path, ((const struct manifest_file *)b)->path);
}

int manifest_parse(struct manifest *manifest, const char *text, size_t bytes, const char *path)
{
    struct parsing parsing = {.manifest = manifest, .shard = NO_SHARD};
    const char *end = memchr(text, '\n', bytes);

    *manifest = (struct manifest){0};
    if (!end)
        return -ENODATA;
    char *head = strndup(text, (size_t)(end - text));
    bool known = head && strlen(head) == (size_t)(end - text) && parse_head(manifest, head);
    free(head);
    if (!known)
        return fail(EINVAL,
                    "%s: not a manifest of this version of iobench; remove the folder by hand",
                    path);
    manifest->done = memory_array(manifest->shards, sizeof *manifest->done);
    parsing.rounds = memory_array(manifest->shards, sizeof *parsing.rounds);
    size_t rest = bytes - (size_t)(end + 1 - text);
    char *copy = malloc(rest + 1);
    int code = manifest->done && parsing.rounds && copy
                   ? 0
                   : fail(ENOMEM, "%s: out of memory for a manifest", path);
    if (code == 0) {
        memcpy(copy, end + 1, rest);
        /* A last line without a newline was cut by a crash. */
        for (char *line = copy, *next; code == 0; line = next + 1) {
            next = memchr(line, '\n', rest - (size_t)(line - copy));
            if (!next)
                break;
            *next = '\0';
            if (strlen(line) == (size_t)(next - line)) /* the line contains no NUL */
                code = parse_line(&parsing, line);
        }
    }
    if (code == 0) {
        /* Keep only the files of each shard's last complete block. */
        size_t kept = 0;
        for (size_t i = 0; i < manifest->file_count; i++) {
            struct manifest_file *file = &manifest->files[i];
            if (manifest->done[file->shard] &&
                parsing.rounds[file->shard] == parsing.file_rounds[i])
                manifest->files[kept++] = *file;
            else
                free(file->path);
        }
        manifest->file_count = kept;
        if (kept > 0)
            qsort(manifest->files, kept, sizeof *manifest->files, compare_files);
        for (uint32_t i = 0; i < manifest->shards; i++)
            manifest->finished += manifest->done[i];
    }
    free(copy);
    free(parsing.rounds);
    free(parsing.file_rounds);
    return code;
}

void manifest_release(struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->file_count; i++)
        free(manifest->files[i].path);
    free(manifest->files);
    free(manifest->done);
    free(manifest->maker);
    free(manifest->command);
    *manifest = (struct manifest){0};
}

/* ---- writing ---- */

char *manifest_head(uint64_t plan, const char *suffix, uint32_t shards)
{
    char *text = NULL;

    assert(strlen(suffix) < MANIFEST_SUFFIX_BYTES);
    if (asprintf(&text, head_format, plan, suffix, shards) >= 0)
        return text;
    fail(ENOMEM, "out of memory for a manifest");
    return NULL;
}

int manifest_block_begin(struct text_stream *block, uint32_t shard)
{
    int code = text_stream_open(block);

    if (code == 0)
        fprintf(block->stream, "shard %" PRIu32 "\n", shard);
    return code;
}

int manifest_block_add(struct text_stream *block, const struct manifest_file *file)
{
    if (file->is_folder)
        fputs("folder ", block->stream);
    else
        fprintf(block->stream, "file %" PRIu64 " %" PRId64 " ", file->bytes, file->mtime_ns);
    put_escaped(block->stream, file->path);
    return putc('\n', block->stream) == EOF ? fail(ENOMEM, "out of memory for a manifest") : 0;
}

char *manifest_block_end(struct text_stream *block, uint32_t shard)
{
    char *text;
    size_t bytes;

    fprintf(block->stream, "done %" PRIu32 "\n", shard);
    text_stream_take(block, &text, &bytes);
    return text;
}

char *manifest_start(const char *command, bool is_synthetic)
{
    char host[65] = "this host", *text = NULL;
    struct text_stream line;
    size_t bytes;

    gethostname(host, sizeof host - 1);
    if (text_stream_open(&line))
        return NULL;
    FILE *stream = line.stream;
    fprintf(stream, "by %d%%20on%%20", (int)getpid());
    put_escaped(stream, host);
    if (command) {
        fputs("\ncommand ", stream);
        put_escaped(stream, command);
    }
    fputs(is_synthetic ? "\n" MANIFEST_SYNTHETIC "\n" : "\n", stream);
    text_stream_take(&line, &text, &bytes);
    return text;
}

/* ---- is a data set complete? ----
 *
 * A mark in the folder that the path names, or in a folder above it that can contain a shard of the
 * set, means that it is incomplete. */

enum {
    /* An image of plain files before its shard is committed: SET/DRAFT/SHARD/CLASS/IMAGE */
    LEVELS = 5,
    LOOKED_AT_BYTES = 256 << 20,
    LOOKED_AT_START = 16 << 10,
};

/* Remove the last component of path. Returns false when nothing is left above it. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* Return the real path of root, or a server's path unchanged; NULL if it does not exist. free()
 * it. */
static char *real_place(const char *root)
{
    if (store_is_local(root))
        return realpath(root, NULL);
    char *path = strdup(root);
    for (size_t length = path ? strlen(path) : 0; length > 0 && path[length - 1] == '/';)
        path[--length] = '\0';
    return path;
}

int manifest_check_complete(const char *root)
{
    char *folder = real_place(root);
    bool go_on = folder && (store_is_folder(folder) || go_up(folder));
    int levels = store_is_local(root) ? LEVELS : 1, code = 0;
    struct store_status above, found;

    for (int level = 0; code == 0 && go_on && level < levels; level++) {
        char *mark = file_join(folder, MANIFEST_UNFINISHED), *set = file_join(folder, MANIFEST_SET);
        code = mark && set ? 0 : -ENOMEM;
        if (code == 0 && store_exists(mark) && !store_exists(set) &&
            /* Anyone may put a mark above a data set, for example into /tmp, so only a mark made by
             * the folder's owner, root or this user counts there. stat(2): the folder need not be
             * readable. */
            (level == 0 ||
             (store_stat(folder, &above) == 0 && store_stat(mark, &found) == 0 &&
              found.kind == STORE_FILE && !(found.mode & S_IWOTH) &&
              (found.owner == 0 || found.owner == geteuid() || found.owner == above.owner)))) {
            struct manifest manifest = {0};
            char *text = NULL;
            size_t bytes;
            code = store_load(mark, LOOKED_AT_BYTES, &text, &bytes);
            if (code == 0)
                code = manifest_parse(&manifest, text, bytes, mark);
            if (code)
                code = fail(EINPROGRESS, "%s: data set not complete: rerun the pack that makes it",
                            root);
            else
                code = fail(EINPROGRESS,
                            "%s: data set not complete: %u of %u shards finished; %s%.700s", root,
                            manifest.finished, manifest.shards,
                            manifest.command ? "complete it: " : "rerun the pack that makes it",
                            manifest.command ? manifest.command : "");
            manifest_release(&manifest);
            free(text);
        }
        free(mark);
        free(set);
        go_on = go_up(folder);
    }
    free(folder);
    /* A missing file is not an error here. */
    if (code == 0)
        fail_clear();
    return code;
}

bool manifest_is_synthetic(const char *root)
{
    char *folder = real_place(root);
    bool is_there = folder && (store_is_folder(folder) || go_up(folder));
    char *path = is_there ? file_join(folder, MANIFEST_SET) : NULL;
    /* The process that begins a set writes this line, so it is near the start. */
    char text[LOOKED_AT_START + 1];
    const size_t bytes = path ? store_peek(path, text, LOOKED_AT_START) : 0;
    text[bytes] = '\0';
    const bool is_synthetic = strstr(text, "\n" MANIFEST_SYNTHETIC "\n");

    free(path);
    free(folder);
    fail_clear();
    return is_synthetic;
}
