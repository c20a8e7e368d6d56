/* SPDX-License-Identifier: Apache-2.0
 *
 * WebDataset shards: tar archives in which adjacent files with the same key form a sample. The key
 * is the path up to the first dot of its last component; the rest is the extension. A record
 * extends from the first header of a sample to the last byte of its last file. An extension of
 * formats/image_names.h is the image, else the first that ends so (.left.jpg); .cls is the class,
 * else a number in .json. Files without an extension or named like __this__ belong to no sample
 * (webdataset, tariterators.py). */
#include "formats/plugins.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "formats/image_names.h"
#include "formats/scan.h"
#include "formats/tar_walk.h"
#include "formats/tar_write.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { EXTENSIONS_BYTES = 1024 };

struct tar_settings {
    char *match, *label;
};

static const struct option_spec tar_options[] = {
    {.name = "match",
     .type = OPTION_TEXT,
     .offset = offsetof(struct tar_settings, match),
     .metavar = "PATTERN",
     .summary = "in a folder, only files whose names match this shell pattern"},
    {.name = "label",
     .type = OPTION_TEXT,
     .offset = offsetof(struct tar_settings, label),
     .metavar = "KEY",
     .summary = "member of .json files that is the label (default label, cls or class)"},
    {0},
};

/* ---- names ---- */

/* Return whether the first component of name looks like "__this__". */
static bool is_meta(const char *name)
{
    size_t length = strcspn(name, "/");

    return length >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + length - 2, "__", 2) == 0;
}

/* Return the extension, and the length of the key before its dot. NULL if the file belongs to no
 * sample. */
static const char *split_name(const char *name, size_t *key_bytes)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *dot = strchr(base, '.');

    if (!dot || dot == base || is_meta(name))
        return NULL;
    *key_bytes = (size_t)(dot - name);
    return dot + 1;
}

/* Classify an extension of several parts by its last one. */
static enum image_name image_name_of_last(const char *extension)
{
    const char *dot = strrchr(extension, '.');

    return image_name_of(dot ? dot + 1 : extension);
}

/* Return whether this extension marks its files as a sample, so one of them must be its image: the
 * last part names an image ("seg.avif"), or it is a class. */
static bool tells_of_sample(const char *extension)
{
    return image_name_of_last(extension) != IMAGE_NAME_NONE || strcasecmp(extension, "cls") == 0;
}

static bool wanted(const char *name)
{
    return shard_list_ends(name, ".tar");
}

static bool tar_takes(const char *name)
{
    return shard_list_takes(name, wanted);
}

static int tar_detect(const char *path)
{
    char *first = shard_list_first(path, wanted);
    uint8_t block[TAR_BLOCK_BYTES];
    int sure = 0;

    if (!first)
        return 0;
    if (store_peek(first, block, sizeof block) == sizeof block && tar_is_header(block))
        sure = 95;
    else if (wanted(first))
        sure = 60; /* perhaps damaged: tar's message then helps most */
    free(first);
    return sure;
}

/* ---- index ---- */

/* The sample being collected. */
struct gathering {
    char key[TAR_NAME_BYTES];
    size_t key_bytes;
    char extensions[EXTENSIONS_BYTES]; /* each terminated by NUL */
    size_t extensions_bytes;
    uint64_t first, end;
    uint32_t files; /* 0: no sample is being collected */
    bool is_sample, has_image, damaged;
};

static int add_unread(const struct gathering *sample, struct catalog *catalog)
{
    char what[320];

    snprintf(what, sizeof what, "%.*s: no image of a supported kind",
             sample->key_bytes < 256 ? (int)sample->key_bytes : 256, sample->key);
    return catalog_add_unread(catalog, catalog->shards[catalog->shard_count - 1].path,
                              sample->first, what);
}

static int finish_sample(struct gathering *sample, struct catalog *catalog)
{
    int code = 0;

    if (sample->files > 0 && sample->has_image && !sample->damaged)
        code = catalog_add(catalog, sample->first, sample->end - sample->first);
    else if (sample->files > 0 && sample->is_sample && !sample->damaged)
        code = add_unread(sample, catalog);
    else
        catalog->left_out += sample->files;
    sample->files = 0;
    return code;
}

/* Add a file of this extension to the sample. Returns NULL, or what is wrong with it. */
static const char *note_extension(struct gathering *sample, const char *extension)
{
    size_t bytes = strlen(extension) + 1;

    for (size_t at = 0; at < sample->extensions_bytes; at += strlen(sample->extensions + at) + 1)
        if (strcasecmp(sample->extensions + at, extension) == 0)
            return "a sample with two files with the same extension";
    if (bytes > sizeof sample->extensions - sample->extensions_bytes)
        return "a sample with too many files";
    memcpy(sample->extensions + sample->extensions_bytes, extension, bytes);
    sample->extensions_bytes += bytes;
    return NULL;
}

static int gather(struct scanner *scanner, struct catalog *catalog, struct gathering *sample,
                  const struct tar_entry *entry)
{
    size_t key_bytes;
    const char *extension = split_name(entry->name, &key_bytes);
    int code = 0;

    if (!extension) {
        catalog->left_out++;
        return 0;
    }
    if (sample->files > 0 &&
        (sample->key_bytes != key_bytes || memcmp(sample->key, entry->name, key_bytes) != 0))
        code = finish_sample(sample, catalog);
    if (code)
        return code;
    if (sample->files == 0) {
        memcpy(sample->key, entry->name, key_bytes);
        sample->key_bytes = key_bytes;
        sample->extensions_bytes = 0;
        sample->first = entry->header;
        sample->is_sample = sample->has_image = sample->damaged = false;
    }
    sample->files++;
    sample->has_image |= (image_name_of_last(extension) == IMAGE_NAME_READ);
    sample->is_sample |= tells_of_sample(extension);
    sample->end = entry->offset + entry->bytes;
    const char *wrong = note_extension(sample, extension);
    if (!wrong)
        return 0;
    sample->damaged = true;
    return scanner_fault(scanner, EBADMSG, entry->header, wrong);
}

static const uint8_t *from_scanner(void *context, uint64_t offset, size_t count, int *code)
{
    return scanner_at(context, offset, count, code);
}

static bool may_begin(const struct scanner *scanner, uint64_t offset, const uint8_t *block)
{
    (void)scanner;
    (void)offset;
    return tar_is_header(block);
}

/* Report a fault and search for the next header. Returns 1 if there is one. */
static int pass_fault(struct scanner *scanner, struct tar_walk *walk)
{
    static const struct scan_steps steps = {
        .begins = may_begin, .head_bytes = TAR_BLOCK_BYTES, .alignment = TAR_BLOCK_BYTES};
    int code = scanner_fault(scanner, EBADMSG, walk->wrong_offset, walk->wrong);

    if (code == 0)
        code = scanner_find(scanner, &steps, &walk->offset);
    return code ? code : walk->offset < walk->bytes;
}

/* A file truncated between two entries has complete entries and no end marker. One block of zeros
 * is accepted: nothing can be missing before it. */
static int check_end(struct scanner *scanner, const struct tar_walk *walk)
{
    return walk->ended ? 0
                       : scanner_fault(scanner, EBADMSG, walk->bytes,
                                       "the archive ends without its final blocks of zeros: "
                                       "truncated");
}

static int walk_shard(const void *settings, struct scanner *scanner, struct catalog *catalog)
{
    struct tar_walk *walk = memory_zeroed(sizeof *walk);
    struct gathering *sample = memory_zeroed(sizeof *sample);
    struct tar_entry entry;
    int code = walk && sample ? 1 : -ENOMEM;

    (void)settings;
    if (code == 1) {
        walk->source = from_scanner;
        walk->context = scanner;
        walk->bytes = scanner->file_bytes;
    }
    while (code == 1) {
        code = tar_next(walk, &entry);
        if (code == 0) {
            code = check_end(scanner, walk);
            break;
        }
        if (code == -EBADMSG) {
            code = finish_sample(sample, catalog);
            code = code ? code : pass_fault(scanner, walk);
        } else if (code == 1) {
            code = gather(scanner, catalog, sample, &entry);
            code = code ? code : 1;
        }
    }
    if (code == 0)
        code = finish_sample(sample, catalog);
    free(walk);
    free(sample);
    return code;
}

static int tar_index(const void *settings, const char *root, const struct format_scan *scan,
                     struct catalog *catalog)
{
    const struct tar_settings *tar = settings;
    struct shard_list list;
    int code = shard_list_open(&list, root, tar->match, wanted);

    if (code == 0)
        code = scan_shards(&list, walk_shard, settings, scan, catalog);
    shard_list_release(&list);
    return code;
}

/* ---- parse ---- */

static const uint8_t *from_memory(void *context, uint64_t offset, size_t count, int *code)
{
    (void)count, (void)code;
    return (const uint8_t *)context + offset;
}

/* Parse an integer surrounded by blanks. */
static int take_class(const uint8_t *text, uint64_t bytes, int32_t *label)
{
    uint64_t at = 0;
    int64_t number = 0;

    while (at < bytes && isspace(text[at]))
        at++;
    bool negative = at < bytes && text[at] == '-';
    at += negative;
    uint64_t first = at;
    for (; at < bytes && isdigit(text[at]) && number <= INT32_MAX; at++)
        number = number * 10 + (text[at] - '0');
    bool some = at > first;
    while (at < bytes && (isspace(text[at]) || text[at] == '\0'))
        at++;
    if (!some || at < bytes || number > INT32_MAX)
        return fail(EBADMSG, "the class in a .cls file is not an integer");
    *label = negative ? -1 : (int32_t)number; /* a negative number is not a class */
    return 0;
}

/* Take the label of a .json file; none if it has no such number. */
static int take_json(const struct tar_settings *tar, const char *text, size_t bytes,
                     struct sample *sample)
{
    static const char *const usual[] = {"label", "cls", "class"};
    json_error_t error;
    json_t *document = json_loadb(text, bytes, 0, &error);
    const json_t *value = tar->label ? json_object_get(document, tar->label) : NULL;

    for (size_t i = 0; !tar->label && !json_is_number(value) && i < sizeof usual / sizeof *usual;
         i++)
        value = json_object_get(document, usual[i]);
    if (json_is_number(value))
        sample_set_label(sample, json_number_value(value));
    int code = document ? 0 : fail(EBADMSG, "a .json file of a sample: %s", error.text);
    json_decref(document);
    return code;
}

static void take_image(const uint8_t *record, const struct tar_entry *entry,
                       struct format_scratch *scratch, struct sample *sample)
{
    size_t length = strlen(entry->name);

    sample->image = record + entry->offset;
    sample->image_bytes = (size_t)entry->bytes;
    if (length > scratch->capacity)
        return;
    memcpy(scratch->bytes, entry->name, length);
    sample->name = scratch->bytes;
    sample->name_bytes = length;
}

static int tar_parse(const void *settings, const struct shard *shard, const void *record,
                     size_t bytes, unsigned flags, struct format_scratch *scratch,
                     struct sample *sample)
{
    struct tar_walk walk;
    struct tar_entry entry;
    size_t key_bytes, json_bytes = 0;
    const char *json = NULL;
    bool has_plain = false, has_class = false;
    int code;

    (void)shard, (void)flags;
    memset(&walk, 0, offsetof(struct tar_walk, name)); /* leave out the name: it is large */
    walk.source = from_memory;
    walk.context = (void *)(uintptr_t)record;
    walk.bytes = bytes;
    while ((code = tar_next(&walk, &entry)) == 1) {
        const char *extension = split_name(entry.name, &key_bytes);
        const char *text = (const char *)record + entry.offset;
        if (!extension)
            continue;
        const bool plain = image_name_of(extension) == IMAGE_NAME_READ;
        if (plain ? !has_plain
                  : !sample->image && image_name_of_last(extension) == IMAGE_NAME_READ) {
            take_image(record, &entry, scratch, sample);
            has_plain = plain;
        } else if (strcasecmp(extension, "cls") == 0) {
            code = take_class((const uint8_t *)text, entry.bytes, &sample->label);
            has_class = true;
        } else if (strcasecmp(extension, "json") == 0) {
            json = text;
            json_bytes = (size_t)entry.bytes;
        }
        if (code < 0)
            return code;
    }
    if (code)
        return fail(EBADMSG, "at %llu: %s", (unsigned long long)walk.wrong_offset, walk.wrong);
    if (json && !has_class && (code = take_json(settings, json, json_bytes, sample)))
        return code;
    return sample->image_bytes ? 0 : fail(EBADMSG, "a sample without an image");
}

const struct format_ops format_tar = {
    .plugin = {.name = "tar",
               .summary = "tar shards of WebDataset",
               .options = tar_options,
               .settings_size = sizeof(struct tar_settings),
               .state_size = sizeof(struct tar_write)},
    .detect = tar_detect,
    .takes = tar_takes,
    .index = tar_index,
    .parse = tar_parse,
    .shard_open = tar_write_open,
    .shard_append = tar_write_append,
    .shard_close = tar_write_close,
    .shard_path = tar_write_path,
};
