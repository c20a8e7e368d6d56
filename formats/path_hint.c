/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/path_hint.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/option.h"
#include "dataset/store.h"
#include "formats/image_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds that iobench does not read, by their content ---- */

enum { HEAD_BYTES = 1024 };
enum { BETON_FIELDS_MAX = 64, ARROW_SCHEMA_MAX = 1 << 24 };

struct foreign_kind {
    size_t at;
    const char *start;
    size_t bytes;
    const char *title, *advice;
};

static const struct foreign_kind kinds[] = {
    {0, "PAR1", 4, "Parquet", "export its images to files or TFRecord"},
    {0, "ARROW1", 6, "Arrow", "export its images to files or TFRecord"},
    {0, "\x89HDF\r\n\x1a\n", 8, "HDF5", "export its images to files"},
    {512, "\x89HDF\r\n\x1a\n", 8, "HDF5", "export its images to files"}, /* as MATLAB begins it */
    {0, "\x93NUMPY", 6, "an npy array", "write its images to files"},
    {0, "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", 8, "ArrayRecord or Riegeli",
     "write the records as TFRecord, which holds the same Examples"},
};

/* What pack may read, by libarchive. */
static const struct foreign_kind zip = {0, "PK\x03\x04", 4, "a zip archive or npz",
                                        "unpack it, write arrays to image files"};
static const char to_unpack[] = "unpack a tar, name the --format of a shard";
static const struct foreign_kind archives[] = {
    {0, "\x1f\x8b", 2, "compressed by gzip", to_unpack},
    {0, "\xfd\x37zXZ\0", 6, "compressed by xz", to_unpack},
    {0, "BZh", 3, "compressed by bzip2", to_unpack},
    {0, "\x28\xb5\x2f\xfd", 4, "compressed by zstd", to_unpack},
    {0, "7z\xbc\xaf\x27\x1c", 6, "a 7z archive", "unpack it"},
};

static const struct foreign_kind beton = {.title = "a .beton file of FFCV",
                                          .advice = "pack the images that it was written from"};
static const struct foreign_kind arrow_stream = {.title = "an Arrow stream (Hugging Face datasets)",
                                                 .advice =
                                                     "export its images to files or TFRecord"};
static const struct foreign_kind pickle = {.title = "a pickled Python object",
                                           .advice = "let Python write its images to files"};

static bool is_kind(const struct foreign_kind *kind, const uint8_t *head, size_t bytes)
{
    return bytes >= kind->at + kind->bytes &&
           memcmp(head + kind->at, kind->start, kind->bytes) == 0;
}

static const struct foreign_kind *foreign_kind_of(const uint8_t *head, size_t bytes)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (is_kind(&kinds[i], head, bytes))
            return &kinds[i];
    if (bytes >= 24) {
        /* FFCV's header has no magic: version 2, fields, page size, samples, allocation table. */
        const uint32_t first = bytes_le32(head), version = first & 0xffff, fields = first >> 16;
        const uint32_t page = bytes_le32(head + 4);
        if (version == 2 && fields > 0 && fields <= BETON_FIELDS_MAX && page >= 4096 &&
            (page & (page - 1)) == 0 && bytes_le64(head + 16) % page == 0)
            return &beton;
    }
    /* A continuation marker, then the length of the schema. */
    if (bytes >= 16 && bytes_le32(head) == UINT32_MAX && bytes_le32(head + 4) % 8 == 0 &&
        bytes_le32(head + 4) > 0 && bytes_le32(head + 4) < ARROW_SCHEMA_MAX)
        return &arrow_stream;
    /* Protocols 2 to 5, then an opcode: a frame, a container, or a string. */
    if (bytes > 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 && head[2] &&
        strchr("\x95}](cXUBC\x8c\x8e", head[2]))
        return &pickle;
    return NULL;
}

static int refuse_archive(const char *path, const struct foreign_kind *kind)
{
    return fail(ENOTSUP,
                "%s%s%s: images in an archive are read by 'iobench pack' alone, if built with "
                "libarchive (libarchive-dev); else %s",
                path, *path ? ": " : "", kind->title, kind->advice);
}

int path_hint_foreign(const char *path, const uint8_t *head, size_t bytes)
{
    const struct foreign_kind *kind = foreign_kind_of(head, bytes);

    if (is_kind(&zip, head, bytes))
        return refuse_archive(path, &zip);
    return kind
               ? fail(ENOTSUP,
                      "%s%s%s, which iobench does not read; %s ('iobench pack' makes a data set of "
                      "image files)",
                      path, *path ? ": " : "", kind->title, kind->advice)
               : 0;
}

/* ---- what is there instead ---- */

enum { LOOKED_AT = 64, FOLDER_DEPTH = 2, SETS_NAMED = 3 };

struct path_survey {
    const char *folder;
    path_hint_format recognise;
    int depth, left; /* files to look at */
    bool any;
    char sets[256], shards[256], list[128]; /* "train (tar), val (tar)"; below the path itself */
    int set_count;
};

static int survey_folder(struct path_survey *survey, const char *path);

static void note_file(struct path_survey *survey, const char *path, const char *name)
{
    const struct plugin *format = survey->recognise(path);
    const char *dot = strrchr(name, '.');

    if (image_name_ends(name, ".jsonl") || image_name_ends(name, ".ndjson"))
        snprintf(survey->list, sizeof survey->list,
                 "; %.64s lists samples: name the folder that holds them", name);
    else if (format && !survey->shards[0] && !option_find(format->options, "match"))
        snprintf(survey->shards, sizeof survey->shards, "; %.64s looks like %s: name that file",
                 name, format->name);
    else if (format && !survey->shards[0])
        snprintf(survey->shards, sizeof survey->shards,
                 "; %.64s looks like %s: --format %s:match=%s%.32s", name, format->name,
                 format->name, dot ? "*" : "", dot ? dot : name);
}

static int look_at(void *context, const struct store_entry *entry)
{
    struct path_survey *survey = context;
    uint8_t head[HEAD_BYTES];
    int code = 0;

    survey->any = true;
    if (entry->name[0] == '.' || survey->left-- <= 0)
        return 0;
    char *path = file_join(survey->folder, entry->name);
    if (path && entry->kind == STORE_FILE) {
        code = path_hint_foreign(path, head, store_peek(path, head, sizeof head));
        if (code == 0 && survey->depth == 1)
            note_file(survey, path, entry->name);
    } else if (path && entry->kind == STORE_FOLDER) {
        if (survey->depth == 1) {
            const char *name = entry->name;
            const struct plugin *format = survey->recognise(path);
            const size_t used = strlen(survey->sets);
            if (format && survey->set_count++ < SETS_NAMED)
                snprintf(survey->sets + used, sizeof survey->sets - used, "%s%.48s (%s)",
                         used ? ", " : "; data sets are below it: name one of ", name,
                         format->name);
        }
        if (survey->depth < FOLDER_DEPTH) {
            struct path_survey below = {.recognise = survey->recognise, .depth = survey->depth + 1};
            code = survey_folder(&below, path);
        }
    }
    free(path);
    return code;
}

/* A folder below that cannot be listed holds nothing known. */
static int survey_folder(struct path_survey *survey, const char *path)
{
    survey->folder = path;
    survey->left = LOOKED_AT;
    int code = store_list(path, look_at, survey);
    return code == -ENOTSUP || survey->depth == 1 ? code : 0;
}

int path_hint_survey(const char *path, path_hint_format recognise, const char *supported)
{
    struct path_survey survey = {.recognise = recognise, .depth = 1};
    struct store_status status;
    uint8_t head[HEAD_BYTES];
    int code = store_stat(path, &status);

    if (code == 0 && status.kind == STORE_FOLDER) {
        code = survey_folder(&survey, path);
        if (code == 0 && !survey.any)
            code = fail(EINVAL, "%s: an empty folder; is its file system mounted?", path);
    } else if (code == 0) {
        struct store_file *file = NULL;
        code = store_open(path, STORE_READ, &file); /* for the reason, if it cannot be read */
        store_close(file, false);
        if (code == 0 && status.bytes == 0)
            code = fail(EINVAL, "%s: an empty file", path);
        const size_t bytes = code ? 0 : store_peek(path, head, sizeof head);
        if (code == 0)
            code = path_hint_foreign(path, head, bytes);
        /* Compressed: a tar, that only pack reads, or a shard under another name. */
        for (size_t i = 0; code == 0 && supported && i < sizeof archives / sizeof archives[0]; i++)
            if (is_kind(&archives[i], head, bytes))
                code = refuse_archive(path, &archives[i]);
        if (code == 0)
            note_file(&survey, path, path);
        survey.shards[0] = '\0'; /* is the path itself */
    }
    if (code || !supported)
        return code;
    return fail(EINVAL, "%s: unknown format (supported: %s)%s", path, supported,
                survey.sets[0]     ? survey.sets
                : survey.shards[0] ? survey.shards
                : survey.list[0]   ? survey.list
                                   : "; choose one with --format");
}

const char *path_hint_missing(const char *path)
{
    static char text[512];
    char match[128] = "";
    size_t folder = strcspn(path, "{*?["), used = 0;

    if (path[folder] == '\0')
        return "";
    while (folder > 0 && path[folder - 1] != '/')
        folder--;
    for (const char *at = path + folder; *at && used < sizeof match - 1; at++) {
        match[used++] = *at == '{' ? '*' : *at;
        if (*at == '{' && strchr(at, '}'))
            at = strchr(at, '}');
    }
    snprintf(text, sizeof text,
             "; it is a pattern: name the folder %.*s, and its shards by --format NAME:match='%s'",
             folder ? (int)(folder < 256 ? folder : 256) : 1, folder ? path : ".", match);
    return text;
}
