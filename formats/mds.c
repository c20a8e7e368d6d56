/* SPDX-License-Identifier: Apache-2.0
 *
 * MDS as MosaicML Streaming writes it (version 2): a folder of shards and index.json, which lists
 * them. A shard, little-endian: u32 samples, u32 offset of each sample and of the end, the columns
 * as JSON, the samples. A sample: u32 size of each column of variable size, then the bytes of all
 * columns, in the order of their names (streaming, format/mds/writer.py). A shard may be compressed
 * as a whole by zstd. Read-only. */
#include "formats/plugins.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "dataset/inflate.h"
#include "formats/mds_columns.h"
#include "formats/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    INDEX_PEEK = 8192,
    INDEX_BYTES_MAX = 1 << 28, /* 10 million shards are not a data set */
    COLUMNS_BYTES_MAX = 1 << 20,
};

struct mds_settings {
    char *image, *label;
};

static const struct option_spec mds_options[] = {
    {.name = "image",
     .type = OPTION_TEXT,
     .offset = offsetof(struct mds_settings, image),
     .metavar = "COLUMN",
     .summary = "image column (default: the first of encoding jpeg, png or pil)"},
    {.name = "label",
     .type = OPTION_TEXT,
     .offset = offsetof(struct mds_settings, label),
     .metavar = "COLUMN",
     .summary = "label column (default: label, class, target or y, if it is there)"},
    {0},
};

static int mds_detect(const char *path)
{
    char text[INDEX_PEEK + 1];
    char *index = file_join(path, "index.json");
    size_t got = index && store_is_folder(path) ? store_peek(index, text, INDEX_PEEK) : 0;

    free(index);
    text[got] = '\0';
    return strstr(text, "\"shards\"") && strstr(text, "\"column_encodings\"") ? 95 : 0;
}

/* ---- index.json ---- */

/* Return whether name stays below the folder: MDS sets that were merged have shards in subfolders.
 */
static bool is_below(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || *name == '/')
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t bytes = strcspn(part, "/");
        if (bytes == 0 || (part[0] == '.' && (bytes == 1 || (bytes == 2 && part[1] == '.'))))
            return false;
    }
    return true;
}

static int take_shard(const json_t *shard, const char *root, size_t at, char **path)
{
    const char *format = json_string_value(json_object_get(shard, "format"));
    const json_t *raw = json_object_get(shard, "raw_data");
    const char *name = json_string_value(json_object_get(raw, "basename"));
    const json_int_t version = json_integer_value(json_object_get(shard, "version"));

    if (!format || strcmp(format, "mds") != 0 || version != 2)
        return fail(ENOTSUP,
                    "%s/index.json: shard %zu is %s version %" JSON_INTEGER_FORMAT
                    ", expected mds version 2",
                    root, at, format ? format : "(no format)", version);
    if (!name || !is_below(name))
        return fail(EBADMSG, "%s/index.json: shard %zu has no name below the folder", root, at);
    *path = file_join(root, name);
    if (!*path)
        return -ENOMEM;
    if (store_exists(*path))
        return 0;
    /* Streaming inflates whole shards into a cache before it reads them. */
    const char *zip =
        json_string_value(json_object_get(json_object_get(shard, "zip_data"), "basename"));
    if (!zip)
        return fail(ENOENT, "%s is missing, but listed in index.json", *path);
    if (!is_below(zip) || !shard_list_ends(zip, ".zstd"))
        return fail(ENOTSUP, "%s/index.json: shard %zu is compressed other than by zstd", root, at);
    free(*path);
    *path = file_join(root, zip);
    return *path ? 0 : -ENOMEM;
}

/* Read index.json. Its shards are listed in order; counts has the samples of each. Release list and
 * free(*counts) in either case. */
static int read_index(const char *root, struct shard_list *list, uint64_t **counts)
{
    char *path = file_join(root, "index.json"), *text = NULL;
    size_t bytes = 0;
    json_error_t error;
    int code = path ? store_load(path, INDEX_BYTES_MAX, &text, &bytes) : -ENOMEM;
    json_t *document = code == 0 ? json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error) : NULL;
    const json_t *shards = json_object_get(document, "shards");
    const size_t count = json_array_size(shards);

    free(text);
    if (code == 0 && !document)
        code = fail(EBADMSG, "%s: line %d: %s", path, error.line, error.text);
    else if (code == 0 && (count == 0 || count > UINT32_MAX))
        code = fail(EBADMSG, "%s: no shards", path);
    if (code == 0) {
        list->paths = memory_array(count, sizeof *list->paths);
        *counts = memory_array(count, sizeof **counts);
        code = list->paths && *counts ? 0 : -ENOMEM;
    }
    for (size_t i = 0; code == 0 && i < count; i++) {
        const json_t *shard = json_array_get(shards, i);
        code = take_shard(shard, root, i, &list->paths[i]);
        list->count += list->paths[i] != NULL;
        (*counts)[i] = (uint64_t)json_integer_value(json_object_get(shard, "samples"));
    }
    json_decref(document);
    free(path);
    return code;
}

/* ---- a shard ---- */

/* The head of a shard, read in order, from a plain or compressed file. */
struct head {
    struct scanner *scanner;
    struct inflate *stream; /* NULL: plain */
    uint64_t offset;
};

/* Read the next bytes. Returns 0, 1 at the end of the file, or an error. */
static int take(struct head *head, void *to, size_t bytes)
{
    int code = 0;

    if (head->stream) {
        int64_t got = inflate_read(head->stream, to, bytes);
        code = got < 0 ? (int)got : (size_t)got < bytes;
    } else if (head->offset > head->scanner->file_bytes ||
               bytes > head->scanner->file_bytes - head->offset) {
        code = 1;
    } else {
        const uint8_t *from = scanner_at(head->scanner, head->offset, bytes, &code);
        if (from)
            memcpy(to, from, bytes);
    }
    head->offset += bytes;
    return code;
}

static int take_u32(struct head *head, uint64_t *number)
{
    uint8_t bytes[4] = {0};
    int code = take(head, bytes, sizeof bytes);

    *number = bytes_le32(bytes);
    return code;
}

/* Read the offsets of samples + 1; the first is the end of the head. Returns 1 and *what if they
 * are wrong. */
static int take_offsets(struct head *head, uint64_t *samples, uint32_t **offsets, const char **what)
{
    int code = take_u32(head, samples);
    uint64_t number, previous = 0;

    *what = "the file ends inside the offsets of its samples";
    for (uint64_t i = 0; code == 0 && i <= *samples; i++) {
        code = take_u32(head, &number);
        if (code == 0 && number < (i ? previous : 4 * (*samples + 2))) {
            *what = "the offsets of its samples are not in order";
            code = 1;
        }
        if (code == 0)
            code = memory_room(offsets, i, sizeof **offsets, "samples");
        if (code == 0)
            (*offsets)[i] = (uint32_t)number;
        previous = number;
    }
    return code;
}

/* Read the description of the columns, up to the first sample. */
static int take_layout(const struct mds_settings *settings, struct head *head, uint64_t end,
                       uint64_t *layout, const char **what)
{
    const struct mds_choice choice = {.image = settings->image, .label = settings->label};
    const size_t bytes = (size_t)(end - head->offset);

    *what = "the description of its columns is too long, or the file ends inside it";
    if (bytes > COLUMNS_BYTES_MAX)
        return 1;
    char *text = memory_zeroed(bytes + 1);
    int code = text ? 0 : -ENOMEM;
    for (size_t done = 0, part; code == 0 && done < bytes; done += part) {
        part = bytes - done < SCANNER_HEADER_BYTES ? bytes - done : SCANNER_HEADER_BYTES;
        code = take(head, text + done, part);
    }
    if (code == 0)
        code = mds_layout(head->scanner->path, text, bytes, &choice, layout);
    free(text);
    return code;
}

/* Check that the file ends with its last sample. */
static int check_end(struct head *head, uint64_t end, const char **what)
{
    uint64_t bytes = head->scanner->file_bytes;

    if (head->stream) {
        int64_t got = inflate_read(head->stream, NULL, end + 1 - head->offset);
        if (got < 0)
            return (int)got;
        bytes = head->offset + (uint64_t)got;
    }
    *what = bytes < end ? "the file ends inside a sample: it was truncated"
                        : "bytes after the last sample";
    return bytes != end;
}

static int read_head(const struct mds_settings *settings, struct head *head,
                     struct catalog *catalog, const char **what)
{
    uint64_t samples, layout;
    uint32_t *offsets = NULL;
    int code = take_offsets(head, &samples, &offsets, what);

    if (code == 0)
        code = take_layout(settings, head, offsets[0], &layout, what);
    if (code == 0)
        code = check_end(head, offsets[samples], what);
    if (code == 0) {
        catalog_set_layout(catalog, layout);
        if (head->stream)
            catalog_set_stream_bytes(catalog, offsets[samples]);
    }
    for (uint64_t i = 0; code == 0 && i < samples; i++) {
        code = catalog_add(catalog, offsets[i], offsets[i + 1] - offsets[i]);
        if (code == 0 && head->stream)
            code = scanner_count_inflated(head->scanner, 0);
    }
    free(offsets);
    return code;
}

static int mds_walk(const void *settings, struct scanner *scanner, struct catalog *catalog)
{
    struct head head = {.scanner = scanner};
    const char *what = NULL;
    int code = 0;

    if (shard_list_ends(scanner->path, ".zstd")) {
        head.stream = inflate_open(scanner->path, SHARD_ZSTD, &code);
        if (!head.stream)
            return code;
        catalog_set_compressed(catalog, SHARD_ZSTD);
    }
    code = read_head(settings, &head, catalog, &what);
    inflate_close(head.stream);
    if (code == -EBADMSG)
        return scanner_fault_recorded(scanner, EBADMSG, head.offset);
    return code > 0 ? scanner_fault(scanner, EBADMSG, head.offset, what) : code;
}

static int mds_index(const void *settings, const char *root, const struct format_scan *scan,
                     struct catalog *catalog)
{
    struct shard_list list = {0};
    uint64_t *counts = NULL;
    int code = read_index(root, &list, &counts);

    if (code == 0)
        code = scan_shards(&list, mds_walk, settings, scan, catalog);
    for (uint32_t i = 0; code == 0 && !scan->fault && i < catalog->shard_count; i++)
        if (catalog->shards[i].record_count != counts[i])
            code = fail(EBADMSG, "%s: %" PRIu64 " samples, but index.json says %" PRIu64,
                        catalog->shards[i].path, catalog->shards[i].record_count, counts[i]);
    shard_list_release(&list);
    free(counts);
    return code;
}

static int mds_parse(const void *settings, const struct shard *shard, const void *record,
                     size_t bytes, unsigned flags, struct format_scratch *scratch,
                     struct sample *sample)
{
    (void)settings, (void)flags, (void)scratch;
    return mds_columns_parse(shard->layout, record, bytes, sample);
}

const struct format_ops format_mds = {
    .plugin = {.name = "mds",
               .summary = "MDS shards of MosaicML Streaming, read-only",
               .options = mds_options,
               .settings_size = sizeof(struct mds_settings)},
    .detect = mds_detect,
    .index = mds_index,
    .parse = mds_parse,
};
