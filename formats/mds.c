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
#include "dataset/catalog.h"
#include "formats/scan.h"

#include <assert.h>
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

#define FIELD(field) offsetof(struct mds_settings, field)
static const struct option_spec mds_options[] = {
    {"image", 0, OPTION_TEXT, FIELD(image), .metavar = "COLUMN",
     .summary = "image column (default: the first of encoding jpeg, png or pil)"},
    {"label", 0, OPTION_TEXT, FIELD(label), .metavar = "COLUMN",
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
    /* Sets that were merged have shards in subfolders. */
    if (!name || !names_below_stays(name))
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
    if (!names_below_stays(zip) || !shard_list_ends(zip, ".zstd"))
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

/* ---- columns ----
 *
 * A column of a fixed size lies after the fixed bytes and the variable columns before it. So two
 * numbers locate each: fixed bytes and variable columns before it. The columns of a shard are
 * packed into one number, its layout, because a sample alone does not tell its columns. From bit 0:
 *   8 variable columns | 8, 16 variable columns and fixed bytes before the image |
 *   8, 16 the same before the label | 4 kind of image | 4 kind of label */

enum { COLUMNS_MAX = 255, FIXED_MAX = 65535, PIL_HEAD = 12 };

enum mds_image { IMAGE_ENCODED, IMAGE_PIL };
enum mds_label {
    LABEL_NONE,
    LABEL_U8,
    LABEL_U16,
    LABEL_U32,
    LABEL_I8,
    LABEL_I16,
    LABEL_I32,
    LABEL_I64,
    LABEL_TEXT
};

static const struct {
    const char *encoding;
    enum mds_label kind;
    unsigned bytes;
} label_kinds[] = {
    {"int", LABEL_I64, 8},    {"int64", LABEL_I64, 8},  {"uint64", LABEL_I64, 8},
    {"int32", LABEL_I32, 4},  {"uint32", LABEL_U32, 4}, {"int16", LABEL_I16, 2},
    {"uint16", LABEL_U16, 2}, {"int8", LABEL_I8, 1},    {"uint8", LABEL_U8, 1},
    {"str", LABEL_TEXT, 0},
};

static const char *const usual_labels[] = {"label", "class", "target", "y"};

/* Where a column begins. */
struct column_place {
    uint64_t variable, fixed; /* variable columns and fixed bytes before it */
};

struct mds_columns {
    uint64_t variable;
    struct column_place image, label;
    enum mds_image image_kind;
    enum mds_label label_kind;
    bool has_image;
};

static bool encoded_as(const char *encoding, const char *name)
{
    size_t length = strlen(name);

    return strncmp(encoding, name, length) == 0 &&
           (encoding[length] == '\0' || encoding[length] == ':');
}

static int take_columns(struct mds_columns *columns, const char *path, const json_t *document,
                        const struct mds_settings *choice)
{
    const json_t *names = json_object_get(document, "column_names");
    const json_t *encodings = json_object_get(document, "column_encodings");
    const json_t *sizes = json_object_get(document, "column_sizes");
    const size_t count = json_array_size(names);
    struct column_place here = {0};

    if (count == 0 || json_array_size(encodings) != count || json_array_size(sizes) != count)
        return fail(EBADMSG, "%s: its columns are not described", path);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const char *encoding = json_string_value(json_array_get(encodings, i));
        const json_int_t bytes = json_integer_value(json_array_get(sizes, i)); /* null: 0 */
        if (!name || !encoding || bytes < 0)
            return fail(EBADMSG, "%s: column %zu has no name, encoding or size", path, i);
        const bool named = choice->image && strcmp(name, choice->image) == 0;
        const bool pil = encoded_as(encoding, "pil");
        if (named && bytes)
            return fail(ENOTSUP, "%s: column %s (%s) has a fixed size: not an image", path, name,
                        encoding);
        if (named || (!choice->image && !columns->has_image && !bytes &&
                      (pil || encoded_as(encoding, "jpeg") || encoded_as(encoding, "png")))) {
            columns->has_image = true;
            columns->image = here;
            columns->image_kind = pil ? IMAGE_PIL : IMAGE_ENCODED;
        }
        bool is_label = choice->label && strcmp(name, choice->label) == 0;
        for (size_t k = 0; !choice->label && k < sizeof usual_labels / sizeof usual_labels[0]; k++)
            is_label |= strcmp(usual_labels[k], name) == 0;
        enum mds_label kind = LABEL_NONE;
        for (size_t k = 0; is_label && k < sizeof label_kinds / sizeof label_kinds[0]; k++)
            if (strcmp(label_kinds[k].encoding, encoding) == 0 && label_kinds[k].bytes == bytes)
                kind = label_kinds[k].kind;
        if (is_label && choice->label && kind == LABEL_NONE)
            return fail(ENOTSUP, "%s: column %s (%s) is not a label", path, name, encoding);
        /* The first, but a number before a text. */
        if (is_label &&
            (columns->label_kind == LABEL_NONE ||
             (columns->label_kind == LABEL_TEXT && kind != LABEL_NONE && kind != LABEL_TEXT))) {
            columns->label = here;
            columns->label_kind = kind;
        }
        here.fixed += (uint64_t)bytes;
        here.variable += bytes == 0;
        if (here.variable > COLUMNS_MAX || (uint64_t)bytes > FIXED_MAX || here.fixed > FIXED_MAX)
            return fail(ENOTSUP, "%s: more than %d columns, or %d bytes of fixed columns", path,
                        COLUMNS_MAX, FIXED_MAX);
    }
    columns->variable = here.variable;
    return 0;
}

/* Derive the layout from a shard's column description (JSON). path: for reasons. Returns 0,
 * -EBADMSG (not a description) or -ENOTSUP (no column to use, too many). */
static int mds_layout(const char *path, const char *json, size_t bytes,
                      const struct mds_settings *choice, uint64_t *layout)
{
    struct mds_columns columns = {0};
    json_error_t error;
    json_t *document = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &error);
    int code = document ? take_columns(&columns, path, document, choice)
                        : fail(EBADMSG, "%s: its columns: %s", path, error.text);

    json_decref(document);
    if (code)
        return code;
    if (!columns.has_image)
        return fail(ENOTSUP, "%s: no column %s: name it with mds:image=COLUMN", path,
                    choice->image ? choice->image : "of encoding jpeg, png or pil");
    if (choice->label && columns.label_kind == LABEL_NONE)
        return fail(ENOTSUP, "%s: no column %s", path, choice->label);
    assert(columns.variable <= COLUMNS_MAX && columns.image.fixed <= FIXED_MAX &&
           columns.label.fixed <= FIXED_MAX && columns.label_kind <= LABEL_TEXT);
    *layout = columns.variable | columns.image.variable << 8 | columns.image.fixed << 16 |
              columns.label.variable << 32 | columns.label.fixed << 40 |
              (uint64_t)columns.image_kind << 56 | (uint64_t)columns.label_kind << 60;
    return 0;
}

/* ---- a shard ---- */

/* The head of a shard, read in order, from a plain or compressed file. */
struct head {
    struct scanner *scanner;
    struct inflate *stream; /* NULL: plain */
    uint64_t offset;
};

/* Read the next bytes. Returns 0, 1 at the end of the file, or an error. */
static int take_bytes(struct head *head, void *to, size_t bytes)
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
    int code = take_bytes(head, bytes, sizeof bytes);

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

static int read_head(const struct mds_settings *settings, struct head *head,
                     struct catalog *catalog, const char **what)
{
    uint64_t samples, layout = 0, file_bytes = head->scanner->file_bytes;
    uint32_t *offsets = NULL;
    char *text = NULL;
    int code = take_offsets(head, &samples, &offsets, what);

    if (code == 0) { /* the description of the columns, up to the first sample */
        const size_t bytes = (size_t)(offsets[0] - head->offset);
        *what = "the description of its columns is too long, or the file ends inside it";
        if (bytes > COLUMNS_BYTES_MAX)
            code = 1;
        else if (!(text = memory_zeroed(bytes + 1)))
            code = -ENOMEM;
        for (size_t done = 0, part; code == 0 && done < bytes; done += part) {
            part = bytes - done < SCANNER_HEADER_BYTES ? bytes - done : SCANNER_HEADER_BYTES;
            code = take_bytes(head, text + done, part);
        }
        if (code == 0)
            code = mds_layout(head->scanner->path, text, bytes, settings, &layout);
        free(text);
    }
    if (code == 0 && head->stream) {
        int64_t got = inflate_read(head->stream, NULL, offsets[samples] + 1 - head->offset);
        code = got < 0 ? (int)got : 0;
        file_bytes = head->offset + (uint64_t)got;
    }
    if (code == 0 && file_bytes != offsets[samples]) {
        *what = file_bytes < offsets[samples] ? "the file ends inside a sample: it was truncated"
                                              : "bytes after the last sample";
        code = 1;
    }
    if (code == 0) {
        catalog_last(catalog)->layout = layout;
        if (head->stream)
            catalog_last(catalog)->stream_bytes = offsets[samples];
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
    /* A damaged shard has no samples, and was reported. */
    for (uint32_t i = 0; code == 0 && i < catalog->shard_count; i++) {
        const struct shard *shard = &catalog->shards[i];
        char what[96];
        snprintf(what, sizeof what, "%" PRIu64 " samples, but index.json says %" PRIu64,
                 shard->record_count, counts[i]);
        if (shard->record_count != counts[i] && (shard->record_count || !scan->fault))
            code = scan_fault(scan, EBADMSG, shard->path, 0, what);
    }
    shard_list_release(&list);
    free(counts);
    return code;
}

/* ---- a sample ---- */

/* Return where a column begins; past the end of the record if its sizes are wrong. */
static uint64_t offset_of(struct column_place place, uint64_t variable, const uint8_t *record)
{
    uint64_t offset = 4 * variable + place.fixed;

    for (uint64_t i = 0; i < place.variable; i++)
        offset += bytes_le32(record + 4 * i);
    return offset;
}

/* A PIL image: u32 width, height, bytes of its mode; the mode; rows of pixels. */
static int take_pil(struct sample *sample)
{
    const uint8_t *head = sample->image;
    const size_t bytes = sample->image_bytes;
    if (bytes == 0)
        return 0;
    const uint64_t mode_bytes = bytes >= PIL_HEAD ? bytes_le32(head + 8) : UINT64_MAX;

    if (bytes < PIL_HEAD || mode_bytes > bytes - PIL_HEAD)
        return fail(EBADMSG, "a PIL image is shorter than its head");
    const uint8_t *mode = head + PIL_HEAD;
    const uint32_t channels = mode_bytes == 3 && memcmp(mode, "RGB", 3) == 0 ? 3
                              : mode_bytes == 1 && *mode == 'L'              ? 1
                                                                             : 0;
    if (!channels)
        return fail(EBADMSG, "a PIL image is neither RGB nor L");
    sample->encoding = SAMPLE_RAW_HWC;
    sample->width = bytes_le32(head);
    sample->height = bytes_le32(head + 4);
    sample->channels = channels;
    sample->image = mode + mode_bytes;
    sample->image_bytes = bytes - PIL_HEAD - (size_t)mode_bytes;
    if ((uint64_t)sample->width * sample->height > SIZE_MAX / 4 ||
        (uint64_t)sample->width * sample->height * channels != sample->image_bytes)
        return fail(EBADMSG, "a PIL image of %u x %u has %zu bytes", sample->width, sample->height,
                    sample->image_bytes);
    return 0;
}

static int mds_parse(const void *settings, const struct shard *shard, const void *record,
                     size_t bytes, unsigned flags, struct format_scratch *scratch,
                     struct sample *sample)
{
    static const uint8_t label_bytes[16] = {0, 1, 2, 4, 1, 2, 4, 8};
    const uint64_t layout = shard->layout, variable = layout & 0xff;
    const struct column_place image = {.variable = layout >> 8 & 0xff,
                                       .fixed = layout >> 16 & 0xffff};
    const struct column_place label = {.variable = layout >> 32 & 0xff,
                                       .fixed = layout >> 40 & 0xffff};
    const enum mds_label kind = (enum mds_label)(layout >> 60);
    const uint8_t *from = record;

    (void)settings, (void)flags, (void)scratch;
    if (kind > LABEL_TEXT || bytes < 4 * variable || image.variable >= variable ||
        label.variable + (kind == LABEL_TEXT) > variable)
        return fail(EBADMSG, "a sample of %zu bytes is shorter than the sizes of its columns",
                    bytes);
    const uint64_t image_at = offset_of(image, variable, from);
    const uint64_t image_bytes = bytes_le32(from + 4 * image.variable);
    const uint64_t label_at = offset_of(label, variable, from);
    const uint64_t label_count =
        kind == LABEL_TEXT ? bytes_le32(from + 4 * label.variable) : label_bytes[kind];
    if (image_at > bytes || image_bytes > bytes - image_at || label_count > bytes ||
        label_at > bytes - label_count)
        return fail(EBADMSG, "the columns of a sample exceed its %zu bytes", bytes);
    sample->image = from + image_at;
    sample->image_bytes = (size_t)image_bytes;
    if (kind == LABEL_TEXT)
        sample_set_label_text(sample, (const char *)from + label_at, (size_t)label_count);
    else if (kind != LABEL_NONE) {
        const uint8_t *at = from + label_at;
        const int64_t value = kind == LABEL_U8    ? *at
                              : kind == LABEL_I8  ? (int8_t)*at
                              : kind == LABEL_U16 ? bytes_le16(at)
                              : kind == LABEL_I16 ? (int16_t)bytes_le16(at)
                              : kind == LABEL_U32 ? bytes_le32(at)
                              : kind == LABEL_I32 ? (int32_t)bytes_le32(at)
                                                  : (int64_t)bytes_le64(at);
        sample_set_label(sample, (double)value);
    }
    return (layout >> 56 & 0xf) == IMAGE_PIL ? take_pil(sample) : 0;
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
