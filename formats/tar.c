/* SPDX-License-Identifier: Apache-2.0
 *
 * WebDataset shards: tar archives in which adjacent files with the same key form a sample
 * (formats/tar_members.h). A record extends from the first header of a sample to the last byte of
 * its last file. */
#include "formats/plugins.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "formats/key_set.h"
#include "formats/scan.h"
#include "formats/tar_members.h"
#include "formats/tar_walk.h"
#include "formats/tar_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { EXTENSIONS_BYTES = 1024 };

struct tar_settings {
    char *match, *image, *label;
};

static struct tar_members members_of(const void *settings)
{
    const struct tar_settings *tar = settings;

    return (struct tar_members){.image = tar->image, .label = tar->label};
}

static const struct option_spec tar_options[] = {
    {.name = "match",
     .type = OPTION_TEXT,
     .offset = offsetof(struct tar_settings, match),
     .metavar = "PATTERN",
     .summary = "in a folder, only files whose names match this shell pattern"},
    {.name = "image",
     .type = OPTION_TEXT,
     .offset = offsetof(struct tar_settings, image),
     .metavar = "EXTENSION",
     .summary = "files that are the image, as left.jpg or wav (default: those of image files)"},
    {.name = "label",
     .type = OPTION_TEXT,
     .offset = offsetof(struct tar_settings, label),
     .metavar = "KEY",
     .summary = "member of .json files that is the label (default label, cls or class)"},
    {0},
};

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
    struct tar_members members;
    struct catalog *catalog;
    char key[TAR_NAME_BYTES + 1], linked[TAR_NAME_BYTES + 1]; /* linked: the last link's key */
    size_t key_bytes;
    char extensions[EXTENSIONS_BYTES]; /* each terminated by NUL */
    size_t extensions_bytes;
    uint64_t first, end;
    uint32_t files; /* 0: no sample is being collected */
    uint32_t images[TAR_PLAIN_IMAGE + 1];
    bool is_sample, is_linked, damaged; /* is_linked: some of it is, which is reported */
    struct key_set with_image, without; /* keys of this shard: files of a sample may be apart */
};

static const char *path_of(const struct gathering *sample)
{
    return sample->catalog->shards[sample->catalog->shard_count - 1].path;
}

#define TO_CHOOSE "; tar:image=EXTENSION chooses one, --decode=none reads what is none"
static const char apart[] = "image and label are apart; write shards with tar --sort=name";

/* Write "KEY (json, cls)" of the sample. */
static const char *describe(const struct gathering *sample, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "%.128s (", sample->key);

    for (size_t at = 0; at < sample->extensions_bytes && used < bytes;
         at += strlen(sample->extensions + at) + 1)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", at ? ", " : "",
                                 sample->extensions + at);
    snprintf(text + (used < bytes - 1 ? used : bytes - 2), 2, ")");
    return text;
}

static int leave_out(const struct gathering *sample, const char *why)
{
    char what[512], text[320];

    snprintf(what, sizeof what, "%s: %s", describe(sample, text, sizeof text), why);
    return catalog_add_unread(sample->catalog, path_of(sample), sample->first, what);
}

/* Its image may be elsewhere in the shard. */
static int finish_imageless(struct gathering *sample)
{
    struct catalog *catalog = sample->catalog;
    char text[320];

    if (sample->is_sample)
        return leave_out(sample, "no image of a supported kind is beside it" TO_CHOOSE
                                 "; write shards with tar --sort=name");
    if (key_set_has(&sample->with_image, sample->key))
        return leave_out(sample, apart);
    catalog->left_out += sample->files;
    int code = catalog_remark(catalog, REMARK_NO_IMAGE, "%s: offset %llu: %s: no image" TO_CHOOSE,
                              path_of(sample), (unsigned long long)sample->first,
                              describe(sample, text, sizeof text));
    return code ? code : key_set_add(&sample->without, sample->key) < 0 ? -ENOMEM : 0;
}

/* The image is the first of the highest rank. What is beside a plain one, as a mask, has another
 * use; among others the user has to choose. */
static int remark_images(const struct gathering *sample)
{
    const uint32_t plain = sample->images[TAR_PLAIN_IMAGE];
    const uint32_t of_parts = sample->images[TAR_IMAGE_OF_PARTS];
    char text[320];

    if (plain + of_parts < 2)
        return 0;
    return catalog_remark(sample->catalog,
                          plain == 1 ? REMARK_UNUSED_IMAGES : REMARK_SEVERAL_IMAGES,
                          "%s: offset %llu: %s; tar:image=EXTENSION chooses one", path_of(sample),
                          (unsigned long long)sample->first, describe(sample, text, sizeof text));
}

static int finish_sample(struct gathering *sample)
{
    int code = 0;

    if (sample->files == 0)
        return 0;
    const uint32_t images = sample->images[TAR_PLAIN_IMAGE] + sample->images[TAR_IMAGE_OF_PARTS];
    if (sample->damaged) {
        sample->catalog->left_out += sample->files;
    } else if (images > 0) {
        code = catalog_add(sample->catalog, sample->first, sample->end - sample->first);
        code = code ? code : remark_images(sample);
        if (code == 0 && key_set_has(&sample->without, sample->key))
            code = leave_out(sample, apart);
        if (code == 0 && key_set_add(&sample->with_image, sample->key) < 0)
            code = -ENOMEM;
    } else if (!sample->is_linked) {
        code = finish_imageless(sample);
    }
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

/* Its contents are not there. */
static int add_link(struct gathering *sample, const struct tar_entry *entry)
{
    char what[320];

    snprintf(what, sizeof what, "%.256s: %s, which is not read", entry->name, entry->kind);
    return catalog_add_unread(sample->catalog, path_of(sample), entry->header, what);
}

static int gather(struct scanner *scanner, struct gathering *sample, const struct tar_entry *entry)
{
    size_t key_bytes;
    const char *extension = tar_members_split(entry->name, &key_bytes);
    int code = 0;

    if (!extension) {
        sample->catalog->left_out++;
        return 0;
    }
    const bool same = sample->files > 0 && sample->key_bytes == key_bytes &&
                      memcmp(sample->key, entry->name, key_bytes) == 0;
    if (entry->kind && tar_members_rank(&sample->members, extension) == TAR_NO_IMAGE &&
        !tar_members_tell(extension) && !tar_members_may_label(extension))
        return 0;      /* nothing is lost with it */
    if (entry->kind) { /* one between the files of a sample does not part them */
        sample->is_linked |= same;
        snprintf(sample->linked, sizeof sample->linked, "%.*s", (int)key_bytes, entry->name);
        return add_link(sample, entry);
    }
    code = same ? 0 : finish_sample(sample);
    if (code)
        return code;
    if (sample->files == 0) {
        memcpy(sample->key, entry->name, key_bytes);
        sample->key[key_bytes] = '\0';
        memset(sample->images, 0, sizeof sample->images);
        sample->key_bytes = key_bytes;
        sample->extensions_bytes = 0;
        sample->first = entry->header;
        sample->is_sample = sample->damaged = false;
        sample->is_linked = strcmp(sample->key, sample->linked) == 0;
    }
    sample->files++;
    sample->end = entry->offset + entry->bytes;
    sample->images[tar_members_rank(&sample->members, extension)]++;
    sample->is_sample |= tar_members_tell(extension);
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

static int walk_entries(struct scanner *scanner, struct tar_walk *walk, struct gathering *sample)
{
    struct tar_entry entry;
    int code = 1;

    while (code == 1) {
        code = tar_next(walk, &entry);
        if (code == 0)
            return check_end(scanner, walk);
        if (code == -EBADMSG) {
            code = finish_sample(sample);
            code = code ? code : pass_fault(scanner, walk);
        } else if (code == 1) {
            code = gather(scanner, sample, &entry);
            code = code ? code : 1;
        }
    }
    return code;
}

static int walk_shard(const void *settings, struct scanner *scanner, struct catalog *catalog)
{
    struct tar_walk *walk = memory_zeroed(sizeof *walk);
    struct gathering *sample = memory_zeroed(sizeof *sample);
    int code = -ENOMEM;

    if (walk && sample) {
        walk->source = from_scanner;
        walk->context = scanner;
        walk->bytes = scanner->file_bytes;
        sample->members = members_of(settings);
        sample->catalog = catalog;
        code = walk_entries(scanner, walk, sample);
        code = code ? code : finish_sample(sample);
        key_set_release(&sample->with_image);
        key_set_release(&sample->without);
    }
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
    const struct tar_members members = members_of(settings);
    enum tar_member_rank best = TAR_NO_IMAGE;
    struct tar_walk walk;
    struct tar_entry entry;
    struct {
        char extension[8];
        uint64_t offset, bytes;
    } label = {0};
    size_t key_bytes;
    int code;

    (void)shard, (void)flags;
    memset(&walk, 0, offsetof(struct tar_walk, name)); /* leave out the name: it is large */
    walk.source = from_memory;
    walk.context = (void *)(uintptr_t)record;
    walk.bytes = bytes;
    while ((code = tar_next(&walk, &entry)) == 1) {
        const char *extension = entry.kind ? NULL : tar_members_split(entry.name, &key_bytes);
        if (!extension)
            continue;
        const enum tar_member_rank rank = tar_members_rank(&members, extension);
        if (rank > best)
            take_image(record, &entry, scratch, sample);
        best = rank > best ? rank : best;
        if (tar_members_may_label(extension) && strcasecmp(label.extension, "cls") != 0) {
            snprintf(label.extension, sizeof label.extension, "%s", extension);
            label.offset = entry.offset;
            label.bytes = entry.bytes;
        }
    }
    if (code)
        return fail(EBADMSG, "at %llu: %s", (unsigned long long)walk.wrong_offset, walk.wrong);
    if (best == TAR_NO_IMAGE)
        return fail(EBADMSG, "a sample without an image");
    return label.extension[0]
               ? tar_members_label(&members, label.extension, (const char *)record + label.offset,
                                   (size_t)label.bytes, sample)
               : 0;
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
