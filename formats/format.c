/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/format.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/random.h"
#include "dataset/manifest.h"
#include "dataset/sidecar.h"
#include "dataset/store.h"
#include "formats/image_names.h"
#include "formats/scan.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "recordio, shards": those that may be written, or all. */
static const char *names_of(bool writable, char *text, size_t bytes)
{
    size_t used = 0;

    for (const struct plugin *const *row = format_registry; *row && used < bytes; row++)
        if (!writable || format_of(*row)->shard_open)
            used +=
                (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", (*row)->name);
    return text;
}

int format_check_writable(const struct plugin *format)
{
    const struct format_ops *ops = format_of(format);
    char names[256];

    if (ops->shard_open)
        return ops->writable ? ops->writable() : 0;
    return fail(ENOTSUP, "format %s is read-only; choose one of: %s", format->name,
                names_of(true, names, sizeof names));
}

int format_shard_path(const struct plugin *format, const char *folder, uint32_t shard,
                      uint32_t shards, char **path)
{
    const struct format_ops *ops = format_of(format);
    const char *alone = shards == 1 || ops->naming.most ? ops->naming.alone : NULL;
    int code = format_check_writable(format), bytes = (int)strlen(folder);
    char count[16] = "";

    *path = NULL;
    if (code || shards == 0)
        return code ? code : (int)ops->naming.most;
    while (alone && !*alone && bytes > 1 && folder[bytes - 1] == '/')
        bytes--;
    if (ops->naming.has_count)
        snprintf(count, sizeof count, "-of-%05u", shards);
    if (!alone)
        *path = file_format_path("%s/train-%0*u%s%s", folder, ops->naming.digits, shard, count,
                                 ops->naming.end);
    else
        *path = *alone ? file_join(folder, alone) : file_format_path("%.*s", bytes, folder);
    return *path ? 0 : -ENOMEM;
}

const struct plugin *format_most_likely(const char *path, int *surest)
{
    const struct plugin *best = NULL;

    *surest = 0;
    for (const struct plugin *const *row = format_registry; *row; row++) {
        const int sure = format_of(*row)->detect(path);
        if (sure > *surest) {
            *surest = sure;
            best = *row;
        }
    }
    return best;
}

/* Recognise for a hint: not by a name alone. */
static const struct plugin *recognised(const char *path)
{
    int surest;
    const struct plugin *best = format_most_likely(path, &surest);

    return surest > FORMAT_BY_NAME ? best : NULL;
}

/* ---- why a path opens no data set: kinds that iobench does not read, by their content ---- */

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

int format_hint_foreign(const char *path, const uint8_t *head, size_t bytes)
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
    int depth, left; /* files to look at */
    bool any;
    char sets[256], shards[256], list[128]; /* "train (tar), val (tar)"; below the path itself */
    int set_count;
};

static int survey_folder(struct path_survey *survey, const char *path);

static void note_file(struct path_survey *survey, const char *path, const char *name)
{
    const struct plugin *format = recognised(path);
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
        code = format_hint_foreign(path, head, store_peek(path, head, sizeof head));
        if (code == 0 && survey->depth == 1)
            note_file(survey, path, entry->name);
    } else if (path && entry->kind == STORE_FOLDER) {
        if (survey->depth == 1) {
            const char *name = entry->name;
            const struct plugin *format = recognised(path);
            const size_t used = strlen(survey->sets);
            if (format && survey->set_count++ < SETS_NAMED)
                snprintf(survey->sets + used, sizeof survey->sets - used, "%s%.48s (%s)",
                         used ? ", " : "; data sets are below it: name one of ", name,
                         format->name);
        }
        if (survey->depth < FOLDER_DEPTH) {
            struct path_survey below = {.depth = survey->depth + 1};
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

/* Find what is there instead of a data set. Succeeds if that is nothing known; fails if it is files
 * of other tools. supported: names of formats if nothing recognises the path, which then fails in
 * any case, with these names and what it found: data sets below, shards of another name, a list.
 * NULL: something may recognise it. Returns 0 or a negative errno with a reason. */
static int survey_path(const char *path, const char *supported)
{
    struct path_survey survey = {.depth = 1};
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
            code = format_hint_foreign(path, head, bytes);
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

const char *format_hint_missing(const char *path)
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

/* ---- data sets ---- */

const struct plugin *format_detect(const char *path)
{
    char names[256];
    int surest;

    if (manifest_check_complete(path))
        return NULL;
    const struct plugin *best = format_most_likely(path, &surest);
    if (surest > FORMAT_BY_NAME)
        return best;
    names_of(false, names, sizeof names);
    return survey_path(path, best ? NULL : names) ? NULL : best;
}

int format_choose(const char *text, const char *path, struct plugin_choice *choice)
{
    const struct plugin *detected = NULL;

    *choice = (struct plugin_choice){0};
    if (strcmp(text, "auto") == 0 && !(detected = format_detect(path)))
        return -EINVAL;
    return plugin_choose("format", format_registry, detected ? detected->name : text, choice);
}

/* Hash the settings, so that a sidecar made with other settings is not used. */
static uint64_t settings_key(const struct plugin_choice *format)
{
    uint64_t key = 0;
    char text[1024];

    for (const struct option_spec *row = format->plugin->options; row && row->name; row++) {
        option_text(row, format->settings, text, sizeof text);
        key = random_hash_text(key, text);
    }
    return key;
}

static void (*say_remark)(const char *text);

void format_on_remark(void (*say)(const char *text))
{
    say_remark = say;
}

void format_say_remarks(const struct catalog *catalog)
{
    char texts[REMARK_KINDS][REMARK_TEXT_BYTES];
    const uint32_t count = say_remark ? catalog_remarks(catalog, texts) : 0;

    for (uint32_t i = 0; i < count; i++)
        say_remark(texts[i]);
}

int format_catalog_kept(const struct plugin_choice *format, const char *root,
                        struct catalog **catalog)
{
    static const enum sidecar_place places[] = {SIDECAR_BESIDE, SIDECAR_CACHE};
    uint64_t key = settings_key(format);
    int code = -ENOENT;

    *catalog = NULL;
    int complete = manifest_check_complete(root);
    if (complete)
        return complete;
    for (size_t i = 0; code && i < sizeof places / sizeof places[0]; i++) {
        char *path = sidecar_path(root, places[i]);
        int loaded = path ? sidecar_load(path, root, format->plugin->name, key, catalog) : -ENOENT;
        free(path);
        if (loaded == 0 || code == -ENOENT)
            code = loaded;
    }
    return code;
}

int format_catalog(const struct plugin_choice *format, const char *root, bool use_sidecar,
                   const struct format_scan *scan, struct catalog **catalog)
{
    static const struct format_scan plain_scan = {0};
    uint64_t key = settings_key(format);
    int code = manifest_check_complete(root);

    *catalog = NULL;
    if (code)
        return code;
    if (use_sidecar && format_catalog_kept(format, root, catalog) == 0) {
        fail_clear();
        return 0;
    }
    fail_clear();
    struct catalog *made = catalog_create(root, format->plugin->name);
    if (!made)
        return -ENOMEM;
    const struct format_ops *ops = format_of(format->plugin);
    scan = scan ? scan : &plain_scan;
    made->fault = scan->fault;
    made->fault_context = scan->fault_context;
    code = ops->index ? ops->index(format->settings, root, scan, made)
                      : scan_folder(root, *(char *const *)format->settings, ops->takes, ops->walk,
                                    format->settings, scan, made);
    made->fault = NULL;
    if (code == 0)
        code = catalog_seal(made);
    if (code) {
        catalog_destroy(made);
        if (code != -ENOENT && code != -ENODATA)
            return code;
        /* A named format that finds none of its files: say what there is instead. */
        char reason[FAIL_REASON_BYTES];
        snprintf(reason, sizeof reason, "%s", fail_reason());
        const bool is_another = ops->detect(root) == 0;
        const int other = is_another ? survey_path(root, NULL) : 0;
        if (other)
            return other;
        const struct plugin *detected = is_another ? format_detect(root) : NULL;
        return detected ? fail(code, "%s; it looks like %s", reason, detected->name)
                        : fail(code, "%s", reason);
    }
    /* A scan that continued past faults may have left records out. */
    if (use_sidecar && !scan->fault) {
        /* Save beside the data, else in the user's cache. If neither works, the next start scans
         * again. */
        char *beside = sidecar_path(made->root, SIDECAR_BESIDE);
        if (!beside || sidecar_save(made, beside, key)) {
            char *cached = sidecar_path(made->root, SIDECAR_CACHE);
            if (cached)
                sidecar_save(made, cached, key);
            free(cached);
        }
        free(beside);
        fail_clear();
    }
    *catalog = made;
    return 0;
}

const char *const format_odd_labels_names[] = {"none", "round", "refuse", NULL};

unsigned format_odd_labels_flags(int odd_labels)
{
    return odd_labels == FORMAT_ODD_NONE    ? FORMAT_ODD_LABELS
           : odd_labels == FORMAT_ODD_ROUND ? FORMAT_ODD_LABELS | FORMAT_ROUND_LABELS
                                            : 0;
}

int format_settle_label(unsigned flags, struct sample *sample)
{
    if (sample->has_odd_label && flags & FORMAT_ROUND_LABELS)
        sample_round_label(sample);
    return sample->has_odd_label && !(flags & FORMAT_ODD_LABELS) ? sample_refuse_label(sample) : 0;
}

int format_parse(const struct plugin_choice *format, const struct shard *shard, const void *record,
                 size_t bytes, unsigned flags, struct format_scratch *scratch,
                 struct sample *sample)
{
    *sample = (struct sample){.label = shard->label};
    int code = format_of(format->plugin)
                   ->parse(format->settings, shard, record, bytes, flags, scratch, sample);
    return code ? code : format_settle_label(flags, sample);
}

int format_remark_sample(struct catalog *catalog, const struct extent *extent,
                         const struct sample *sample)
{
    const char *path = catalog->shards[extent->shard].path;
    int code = 0;

    if (sample->has_odd_label && sample_refuse_label(sample))
        code = catalog_remark(catalog, REMARK_ODD_LABEL, "%s: offset %llu: %s", path,
                              (unsigned long long)extent->offset, fail_reason());
    if (code == 0 && sample->image_bytes == 0)
        code = catalog_remark(catalog, REMARK_EMPTY_IMAGE, "%s: offset %llu", path,
                              (unsigned long long)extent->offset);
    fail_clear();
    return code;
}

int format_writer_open(struct format_writer *writer, const struct plugin_choice *format,
                       const char *path)
{
    *writer = (struct format_writer){.ops = format_of(format->plugin)};
    int code = plugin_usable(format->plugin);
    if (code == 0)
        code = format_check_writable(format->plugin);
    if (code)
        return code;
    writer->state = memory_zeroed(format->plugin->state_size);
    if (!writer->state)
        return -ENOMEM;
    return writer->ops->shard_open(writer->state, format->settings, path);
}

int format_writer_append(struct format_writer *writer, const struct sample *sample)
{
    assert(writer->state && (sample->image || sample->image_bytes == 0));
    return writer->ops->shard_append(writer->state, sample);
}

int format_writer_close(struct format_writer *writer, bool commit)
{
    int code = writer->state ? writer->ops->shard_close(writer->state, commit) : 0;

    free(writer->state);
    *writer = (struct format_writer){0};
    return code;
}

/* ---- results apart from data sets ---- */

/* Is a file of this name taken in a folder with data of the format? Below that folder only names of
 * images are. */
static bool takes(const struct format_ops *format, const char *name, bool is_below)
{
    return format->takes && (!is_below || format->records_are_images) && !shard_list_never(name) &&
           format->takes(name);
}

static bool any_takes(const char *name)
{
    for (const struct plugin *const *row = format_registry; *row; row++)
        if (takes(format_of(*row), name, false))
            return true;
    return false;
}

int format_check_apart(const char *path, const char *set)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char known[PATH_MAX] = "", folder[PATH_MAX];
    char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int code = parent ? 0 : fail(ENOMEM, "out of memory");

    if (code || !any_takes(name) || !realpath(parent, folder)) {
        free(parent);
        return code; /* without a folder, writing fails and says why */
    }
    free(parent);
    if (!set || !realpath(set, known))
        known[0] = '\0';
    for (bool is_below = false; code == 0 && folder[0]; is_below = true) {
        /* Was the folder made by 'iobench pack', or indexed? */
        char *marks[] = {sidecar_path(folder, SIDECAR_BESIDE), file_join(folder, MANIFEST_SET),
                         file_join(folder, MANIFEST_UNFINISHED)};
        bool is_set = strcmp(folder, known) == 0;
        for (int i = 0; i < 3; i++) {
            is_set |= marks[i] && file_exists(marks[i]);
            free(marks[i]);
        }
        const struct plugin *format = is_set ? format_detect(folder) : NULL;
        if (is_set && !format)
            fail_clear(); /* unfinished, or only an option names its format: any one */
        if (format ? takes(format_of(format), name, is_below)
                   : is_set && !is_below && any_takes(name))
            code = fail(EINVAL,
                        "%s: is inside the data set %s, of which it would become a part; name a "
                        "file outside, or another suffix",
                        path, folder);
        *strrchr(folder, '/') = '\0';
    }
    return code;
}
