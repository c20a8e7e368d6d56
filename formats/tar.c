/* SPDX-License-Identifier: Apache-2.0
 *
 * WebDataset shards: tar archives in which adjacent files with the same key form a sample
 * (formats/image_names.h). A record extends from the first header of a sample to the last byte of
 * its last file. */
#include "formats/plugins.h"

#include "base/fail.h"
#include "base/image_header.h"
#include "base/sample.h"
#include "base/memory.h"
#include "base/option.h"
#include "formats/scan.h"
#include "formats/image_names.h"
#include "formats/tar_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vector.h"

/* ---- the files of an archive ----
 *
 * A header block: name 100 bytes, mode 8, uid 8, gid 8, size 12 (at 124), time 12, checksum 8 (at
 * 148), type 1 (at 156), link name 100, magic 6 (at 257), version 2, ..., prefix 155 (at 345). The
 * contents follow, padded to whole blocks; two blocks of zeros end the archive. A header may be
 * preceded by entries that describe it: type 'L' (its contents are the name) and 'x' (lines "LENGTH
 * KEY=VALUE\n"). Of the 'x' lines only path, size and those that mark a sparse file matter here. */

enum {
    NAME_BYTES = 100,
    SIZE_OFFSET = 124,
    SIZE_BYTES = 12,
    CHECKSUM_OFFSET = 148,
    CHECKSUM_BYTES = 8,
    TYPE_OFFSET = 156,
    MAGIC_OFFSET = 257,
    PREFIX_OFFSET = 345,
    PREFIX_BYTES = 155,
    GNU_MORE_OFFSET = 482,    /* another block of the sparse map follows */
    SPARSE_MORE_OFFSET = 504, /* the same flag, in such a block */
};

static int wrong(struct tar_walk *walk, uint64_t offset, const char *what)
{
    walk->wrong = what;
    walk->wrong_offset = offset;
    return -EBADMSG;
}

/* Parse octal digits between spaces, terminated by a space or NUL. */
static bool take_octal(const uint8_t *field, size_t bytes, uint64_t *number)
{
    size_t at = 0, digits = 0;

    for (*number = 0; at < bytes && field[at] == ' '; at++)
        ;
    for (; at < bytes && field[at] >= '0' && field[at] <= '7'; at++, digits++)
        *number = *number << 3 | (uint64_t)(field[at] - '0'); /* at most 12 digits: 36 bits */
    return digits > 0 && (at == bytes || field[at] == ' ' || field[at] == '\0');
}

/* Parse octal digits or, if the first bit is set, an 11-byte number, of which 8 bytes are
 * supported. */
static bool take_size(const uint8_t *field, uint64_t *number)
{
    if (field[0] < 0x80)
        return take_octal(field, SIZE_BYTES, number);
    *number = 0;
    if (field[0] != 0x80)
        return false; /* negative, or larger than any file */
    for (size_t i = 1; i < SIZE_BYTES - 8; i++)
        if (field[i])
            return false;
    for (size_t i = SIZE_BYTES - 8; i < SIZE_BYTES; i++)
        *number = *number << 8 | field[i];
    return *number < UINT64_MAX / 2;
}

/* The checksum is the sum of all bytes, with its own field counted as spaces; some old writers
 * summed signed bytes, so each byte from 128 on counted 256 less. Every header of every record is
 * summed, so the loops are vectorised and the second one runs only if the first sum differs. */
bool tar_is_header(const uint8_t *block)
{
    const uint8_t *own = block + CHECKSUM_OFFSET;
    uint32_t sum = CHECKSUM_BYTES * ' ', high = 0;
    uint64_t written;

    if (!take_octal(own, CHECKSUM_BYTES, &written))
        return false;
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += block[i];
    for (size_t i = 0; i < CHECKSUM_BYTES; i++)
        sum -= own[i];
    if (sum == written)
        return true;
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
        high += block[i] >> 7;
    for (size_t i = 0; i < CHECKSUM_BYTES; i++)
        high -= own[i] >> 7;
    return (int64_t)sum - 256 * (int64_t)high == (int64_t)written;
}

/* Take the name from the header, unless a preceding entry gave one. */
static void take_name(struct tar_walk *walk, const uint8_t *block)
{
    const char *name = (const char *)block, *prefix = name + PREFIX_OFFSET;
    size_t bytes = 0;

    if (walk->has_name)
        return;
    /* GNU's own magic ends in spaces, and such a header has other fields where the prefix would
     * be. */
    if (memcmp(block + MAGIC_OFFSET, "ustar\0", 6) == 0 && *prefix) {
        bytes = strnlen(prefix, PREFIX_BYTES);
        memcpy(walk->name, prefix, bytes);
        walk->name[bytes++] = '/';
    }
    size_t length = strnlen(name, NAME_BYTES);
    memcpy(walk->name + bytes, name, length);
    walk->name[bytes + length] = '\0';
}

static bool has_key(const char *line, size_t bytes, const char *key)
{
    size_t length = strlen(key);

    return bytes >= length && memcmp(line, key, length) == 0;
}

static int take_pax(struct tar_walk *walk, uint64_t offset, uint64_t bytes)
{
    const uint64_t end = offset + bytes;

    while (offset < end) {
        size_t count = end - offset < TAR_NAME_BYTES ? (size_t)(end - offset) : TAR_NAME_BYTES;
        int code = 0;
        const char *line = (const char *)walk->source(walk->context, offset, count, &code);
        if (!line)
            return code;
        uint64_t length = 0;
        size_t at = 0;
        for (; at < count && at < 12 && line[at] >= '0' && line[at] <= '9'; at++)
            length = length * 10 + (uint64_t)(line[at] - '0');
        if (at == 0 || at == count || line[at] != ' ' || length <= at + 1 || length > end - offset)
            return wrong(walk, offset, "a line of a pax header has the wrong length");
        at++;
        bool whole = length <= count;
        if (whole && line[length - 1] != '\n')
            return wrong(walk, offset, "a line of a pax header does not end");
        const size_t text = (whole ? (size_t)length - 1 : count) - at;
        bool good = true;
        line += at; /* "key=value", of which at most TAR_NAME_BYTES are there */
        if (has_key(line, text, "path=")) {
            good = whole;
            memcpy(walk->name, line + 5, text - 5);
            walk->name[text - 5] = '\0';
            walk->has_name = true;
        } else if (has_key(line, text, "size=")) {
            walk->has_bytes = true;
            walk->pax_bytes = 0;
            for (size_t i = 5; i < text && good; i++) {
                good = line[i] >= '0' && line[i] <= '9' && walk->pax_bytes <= UINT64_MAX / 20;
                walk->pax_bytes = walk->pax_bytes * 10 + (uint64_t)(line[i] - '0');
            }
        } else if (has_key(line, text, "GNU.sparse.")) {
            walk->is_sparse = true;
        }
        if (!good)
            return wrong(walk, offset, "a path or size of a pax header is malformed");
        offset += length;
    }
    return 0;
}

/* Entries before a header describe that header only. */
static void forget(struct tar_walk *walk)
{
    walk->has_name = walk->has_bytes = walk->is_sparse = false;
}

/* Read the header at walk->offset. Returns 1 if one was read, with type, size and offset of its
 * contents; 0 at the end. */
static int take_header(struct tar_walk *walk, uint8_t *type, uint64_t *offset, uint64_t *bytes)
{
    const uint64_t header = walk->offset, left = walk->bytes - header;
    int code = 0;

    if (left == 0)
        return 0;
    if (left < TAR_BLOCK_BYTES)
        return wrong(walk, header, "the archive ends within a header: truncated");
    const uint8_t *block = walk->source(walk->context, header, TAR_BLOCK_BYTES, &code);
    if (!block)
        return code;
    if (block[0] == 0 && memcmp(block, block + 1, TAR_BLOCK_BYTES - 1) == 0) {
        walk->ended = true;
        return 0;
    }
    if (!tar_is_header(block))
        return wrong(walk, header, "no tar header: its checksum is wrong");
    *type = block[TYPE_OFFSET];
    *offset = header + TAR_BLOCK_BYTES;
    if (!take_size(block + SIZE_OFFSET, bytes))
        return wrong(walk, header, "the size in a tar header is malformed");
    if (*type == 'L' || *type == 'K' || *type == 'x' || *type == 'g' || *type == 'S') {
        /* Further blocks of a GNU sparse file's map may follow its header. */
        for (bool more = *type == 'S' && block[GNU_MORE_OFFSET]; more; *offset += TAR_BLOCK_BYTES) {
            if (walk->bytes - *offset < TAR_BLOCK_BYTES)
                return wrong(walk, *offset, "the archive ends within a header: truncated");
            const uint8_t *map = walk->source(walk->context, *offset, TAR_BLOCK_BYTES, &code);
            if (!map)
                return code;
            more = map[SPARSE_MORE_OFFSET] != 0;
        }
    } else {
        take_name(walk, block);
        if (walk->has_bytes)
            *bytes = walk->pax_bytes;
        if (*type >= '1' && *type <= '6')
            *bytes = 0; /* links, devices and folders have no contents, whatever the field says */
    }
    if (*bytes > walk->bytes - *offset)
        return wrong(walk, header, "an entry goes past the end of the archive: truncated");
    return 1;
}

int tar_next(struct tar_walk *walk, struct tar_entry *entry)
{
    uint64_t first = walk->offset, offset = 0, bytes = 0;
    uint8_t type = 0;
    int code;

    forget(walk);
    while ((code = take_header(walk, &type, &offset, &bytes)) == 1) {
        if (type == 'L') {
            if (bytes == 0 || bytes > TAR_NAME_BYTES)
                return wrong(walk, offset, "a name of more than 4096 bytes");
            const uint8_t *name = walk->source(walk->context, offset, (size_t)bytes, &code);
            if (!name)
                return code;
            memcpy(walk->name, name, (size_t)bytes);
            walk->name[bytes] = '\0';
            walk->has_name = true;
            code = 0;
        } else {
            code = type == 'x' ? take_pax(walk, offset, bytes) : 1;
        }
        if (code < 0)
            return code;
        uint64_t padded = (bytes + TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
        walk->offset = padded > walk->bytes - offset ? walk->bytes : offset + padded;
        if (code == 0 || type == 'K')
            continue; /* it describes the header that follows */
        if (type != '5' && type != 'g') {
            *entry = (struct tar_entry){.header = first,
                                        .offset = offset,
                                        .bytes = bytes,
                                        .kind = type == '1'                      ? "a hard link"
                                                : type == '2'                    ? "a symbolic link"
                                                : walk->is_sparse || type == 'S' ? "a sparse file"
                                                : type == '0' || type == '\0' || type == '7'
                                                    ? NULL
                                                    : "not a regular file",
                                        .name = walk->name};
            return 1;
        }
        if (type != 'g')
            forget(walk);
        first = walk->offset;
    }
    return code;
}

/* ---- the format ---- */

enum { EXTENSIONS_BYTES = 1024 };

struct tar_settings {
    char *match;
    struct tar_members members;
};

#define FIELD(field) offsetof(struct tar_settings, field)
static const struct option_spec tar_options[] = {
    {"match", 0, OPTION_TEXT, FIELD(match), .metavar = "PATTERN",
     .summary = "in a folder, only files whose names match this shell pattern"},
    {"image", 0, OPTION_TEXT, FIELD(members.image), .metavar = "EXTENSION",
     .summary = "extension of the files that are the image, such as left.jpg or wav (default: "
                "those of image files)"},
    {"label", 0, OPTION_TEXT, FIELD(members.label), .metavar = "KEY",
     .summary = "member of .json files that is the label (default label, cls or class)"},
    {0},
};

static bool wanted(const char *name)
{
    return shard_list_ends(name, ".tar");
}

static int tar_detect(const char *path)
{
    uint8_t block[TAR_BLOCK_BYTES];
    bool is_named;

    if (shard_list_peek(path, wanted, block, sizeof block, &is_named) == sizeof block &&
        tar_is_header(block))
        return 95;
    return is_named ? 60 : 0; /* perhaps damaged: tar's message then helps most */
}

/* ---- index ---- */

/* The sample being collected. */
struct gathering {
    const struct tar_members *members;
    struct catalog *catalog;
    char key[TAR_NAME_BYTES + 1], linked[TAR_NAME_BYTES + 1]; /* linked: the last link's key */
    size_t key_bytes;
    char extensions[EXTENSIONS_BYTES]; /* each terminated by NUL */
    size_t extensions_bytes;
    uint64_t first, end;
    uint32_t files; /* 0: no sample is being collected */
    uint32_t images[TAR_PLAIN_IMAGE + 1];
    bool is_sample, is_linked, damaged; /* is_linked: some of it is, which is reported */
    struct names with_image, without;   /* keys of this shard: files of a sample may be apart */
};

static const char *path_of(const struct gathering *sample)
{
    return catalog_last(sample->catalog)->path;
}

#define TO_CHOOSE "; tar:image=EXTENSION chooses one, --decode=none reads data that is no image"
static const char apart[] = "image and label are apart; write shards with tar --sort=name";

/* Write "KEY (json, cls)" of the sample. */
static const char *describe_sample(const struct gathering *sample, char *text, size_t bytes)
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

    snprintf(what, sizeof what, "%s: %s", describe_sample(sample, text, sizeof text), why);
    return catalog_add_unread(sample->catalog, path_of(sample), sample->first, what);
}

static int finish_sample(struct gathering *sample)
{
    char text[320];
    int code = 0;

    if (sample->files == 0)
        return 0;
    const uint32_t images = sample->images[TAR_PLAIN_IMAGE] + sample->images[TAR_IMAGE_OF_PARTS];
    if (sample->damaged) {
        sample->catalog->left_out += sample->files;
    } else if (images > 0) {
        code = catalog_add(sample->catalog, sample->first, sample->end - sample->first);
        /* The image is the first of the highest rank. Images beside one with a plain extension,
         * such as masks, have another use; without a plain one the user has to choose. */
        if (code == 0 && images > 1)
            code = catalog_remark(
                sample->catalog,
                sample->images[TAR_PLAIN_IMAGE] == 1 ? REMARK_UNUSED_IMAGES : REMARK_SEVERAL_IMAGES,
                "%s: offset %llu: %s; tar:image=EXTENSION chooses one", path_of(sample),
                (unsigned long long)sample->first, describe_sample(sample, text, sizeof text));
        if (code == 0 && names_has(&sample->without, sample->key))
            code = leave_out(sample, apart);
        if (code == 0 && names_number(&sample->with_image, sample->key, sample->key_bytes) < 0)
            code = -ENOMEM;
    } else if (!sample->is_linked && sample->is_sample) {
        code = leave_out(sample, "no image of a supported kind is beside it" TO_CHOOSE
                                 "; write shards with tar --sort=name");
    } else if (!sample->is_linked && names_has(&sample->with_image, sample->key)) {
        code = leave_out(sample, apart);
    } else if (!sample->is_linked) { /* its image may be elsewhere in the shard */
        sample->catalog->left_out += sample->files;
        code = catalog_remark(sample->catalog, REMARK_NO_IMAGE,
                              "%s: offset %llu: %s: no image" TO_CHOOSE, path_of(sample),
                              (unsigned long long)sample->first,
                              describe_sample(sample, text, sizeof text));
        if (code == 0 && names_number(&sample->without, sample->key, sample->key_bytes) < 0)
            code = -ENOMEM;
    }
    sample->files = 0;
    return code;
}

static int gather_entry(struct scanner *scanner, struct gathering *sample,
                        const struct tar_entry *entry)
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
    if (entry->kind && tar_members_rank(sample->members, extension) == TAR_NO_IMAGE &&
        !tar_members_tell(extension) && !tar_members_may_label(extension))
        return 0;      /* nothing is lost with it */
    if (entry->kind) { /* a link between the files of a sample does not split it */
        sample->is_linked |= same;
        snprintf(sample->linked, sizeof sample->linked, "%.*s", (int)key_bytes, entry->name);
        /* Its contents are not there. */
        char what[320];
        snprintf(what, sizeof what, "%.256s: %s, which is not read", entry->name, entry->kind);
        return catalog_add_unread(sample->catalog, path_of(sample), entry->header, what);
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
    sample->images[tar_members_rank(sample->members, extension)]++;
    sample->is_sample |= tar_members_tell(extension);
    const size_t bytes = strlen(extension) + 1;
    const char *wrong = bytes > sizeof sample->extensions - sample->extensions_bytes
                            ? "a sample with too many files"
                            : NULL;
    for (size_t at = 0; at < sample->extensions_bytes; at += strlen(sample->extensions + at) + 1)
        if (strcasecmp(sample->extensions + at, extension) == 0)
            wrong = "a sample with two files with the same extension";
    if (wrong) {
        sample->damaged = true;
        return scanner_fault(scanner, EBADMSG, entry->header, wrong);
    }
    memcpy(sample->extensions + sample->extensions_bytes, extension, bytes);
    sample->extensions_bytes += bytes;
    return 0;
}

static const uint8_t *from_scanner(void *context, uint64_t offset, size_t count, int *code)
{
    return scanner_at(context, offset, count, code);
}

static bool block_may_begin(const struct scanner *scanner, uint64_t offset, const uint8_t *block)
{
    (void)scanner, (void)offset;
    return tar_is_header(block);
}

static const struct scan_steps steps = {
    .begins = block_may_begin, .head_bytes = TAR_BLOCK_BYTES, .alignment = TAR_BLOCK_BYTES};

static int walk_shard(const void *settings, struct scanner *scanner, struct catalog *catalog)
{
    struct tar_walk *walk = memory_zeroed(sizeof *walk);
    struct gathering *sample = memory_zeroed(sizeof *sample);
    struct tar_entry entry;
    int code = walk && sample ? 1 : -ENOMEM;

    if (code == 1) {
        walk->source = from_scanner;
        walk->context = scanner;
        walk->bytes = scanner->file_bytes;
        sample->members = &((const struct tar_settings *)settings)->members;
        sample->catalog = catalog;
    }
    while (code == 1 && (code = tar_next(walk, &entry))) {
        if (code == 1) {
            code = gather_entry(scanner, sample, &entry);
            code = code ? code : 1;
        } else if (code == -EBADMSG) { /* goes on at the next header */
            code = finish_sample(sample);
            if (code == 0)
                code = scanner_fault(scanner, EBADMSG, walk->wrong_offset, walk->wrong);
            if (code == 0)
                code = scanner_find(scanner, &steps, &walk->offset);
            if (code == 0 && walk->offset < walk->bytes)
                code = 1;
            else if (code == 0)
                walk->ended = true;
        }
    }
    /* A file truncated between two entries has complete entries and no end marker. One block of
     * zeros is accepted: nothing can be missing before it. */
    if (code == 0 && !walk->ended)
        code = scanner_fault(scanner, EBADMSG, walk->bytes,
                             "the archive ends without its final blocks of zeros: truncated");
    if (code == 0)
        code = finish_sample(sample);
    if (sample) {
        names_release(&sample->with_image);
        names_release(&sample->without);
    }
    free(walk);
    free(sample);
    return code;
}

/* ---- parse ---- */

static const uint8_t *from_memory(void *context, uint64_t offset, size_t count, int *code)
{
    (void)count, (void)code;
    return (const uint8_t *)context + offset;
}

static int tar_parse(const void *settings, const struct shard *shard, const void *record,
                     size_t bytes, unsigned flags, struct format_scratch *scratch,
                     struct sample *sample)
{
    const struct tar_members *members = &((const struct tar_settings *)settings)->members;
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
        const enum tar_member_rank rank = tar_members_rank(members, extension);
        if (rank > best) {
            const size_t length = strlen(entry.name);
            best = rank;
            sample->image = (const uint8_t *)record + entry.offset;
            sample->image_bytes = (size_t)entry.bytes;
            if (length <= scratch->capacity) {
                sample->name = memcpy(scratch->bytes, entry.name, length);
                sample->name_bytes = length;
            }
        }
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
               ? tar_members_label(members, label.extension, (const char *)record + label.offset,
                                   (size_t)label.bytes, sample)
               : 0;
}

/* ---- writing ----
 *
 * ustar headers, and a pax header before a name that does not fit. The key of a sample is its name
 * up to the first dot, or its number in the shard if it has no name that can be one. No two samples
 * of a shard have one key: readers would take neighbours for one sample, and tar would extract one
 * file over the other. Times and owners are 0: the same samples give the same bytes. */

enum { TAR_WRITE_KEY_BYTES = 1024 };

struct tar_write {
    struct sink sink;
    uint64_t records;
    char key[TAR_WRITE_KEY_BYTES + 1];
    struct names keys;
};

enum { NAME_LIMIT = TAR_WRITE_KEY_BYTES + 8 }; /* including an extension */

static int tar_write_open(void *state, const void *settings, const char *path)
{
    struct tar_write *write = state;

    (void)settings;
    return sink_open(&write->sink, path);
}

/* ---- headers ---- */

/* Write name into the header's two fields. Returns false if it does not fit. */
static bool put_name(char *block, const char *name)
{
    size_t length = strlen(name);

    if (length <= NAME_BYTES) {
        memcpy(block, name, length);
        return true;
    }
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t before = (size_t)(slash - name), after = length - before - 1;
        if (before > 0 && before <= PREFIX_BYTES && after > 0 && after <= NAME_BYTES) {
            memcpy(block + PREFIX_OFFSET, name, before);
            memcpy(block, slash + 1, after);
            return true;
        }
    }
    return false;
}

static int write_header(struct tar_write *write, const char *name, char type, uint64_t bytes)
{
    char block[TAR_BLOCK_BYTES] = {0};
    unsigned sum = 0;

    if (!put_name(block, name))
        memcpy(block, name, NAME_BYTES); /* the pax header before it has the full name */
    memcpy(block + 100, "0000644", 8);
    memcpy(block + 108, "0000000", 8);
    memcpy(block + 116, "0000000", 8);
    snprintf(block + 124, 12, "%011llo", (unsigned long long)bytes);
    memcpy(block + 136, "00000000000", 12);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257, "ustar\00000", 8); /* NUL, then version "00" */
    for (size_t i = 0; i < sizeof block; i++)
        sum += (uint8_t)block[i];
    snprintf(block + 148, 8, "%06o", sum); /* then NUL and a space */
    return sink_write(&write->sink, block, sizeof block);
}

static int write_padded(struct tar_write *write, const void *bytes, size_t count)
{
    static const uint8_t zeros[TAR_BLOCK_BYTES];
    int code = sink_write(&write->sink, bytes, count);

    return code ? code
                : sink_write(&write->sink, zeros,
                             (TAR_BLOCK_BYTES - count % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES);
}

static int write_file(struct tar_write *write, const char *extension, const void *bytes,
                      size_t count)
{
    char name[NAME_LIMIT], block[TAR_BLOCK_BYTES];
    int code = 0;

    snprintf(name, sizeof name, "%s.%s", write->key, extension);
    if (!put_name(block, name)) {
        /* The length of a pax line includes its own digits. */
        char line[NAME_LIMIT + 32];
        int rest = (int)(strlen(name) + strlen(" path=\n")), length = rest + 2;
        for (int digits; (digits = snprintf(NULL, 0, "%d", length)) + rest != length;)
            length = rest + digits;
        snprintf(line, sizeof line, "%d path=%s\n", length, name);
        code = write_header(write, "PaxHeaders/path", 'x', (uint64_t)length);
        if (code == 0)
            code = write_padded(write, line, (size_t)length);
    }
    if (code == 0)
        code = write_header(write, name, '0', count);
    return code ? code : write_padded(write, bytes, count);
}

/* ---- samples ---- */

/* Set the key to the name up to the first dot of its last component, without leading slashes.
 * Returns false if a reader would not accept the key, or if it climbs out of the folder in which an
 * archive is extracted. */
static bool take_key(char *key, const struct sample *sample)
{
    const char *name = sample->name;
    size_t bytes = sample->name_bytes;

    while (bytes > 0 && (*name == '/' || *name == '.')) {
        name++;
        bytes--;
    }
    const char *slash = bytes ? memrchr(name, '/', bytes) : NULL;
    const char *base = slash ? slash + 1 : name;
    const char *dot = bytes ? memchr(base, '.', bytes - (size_t)(base - name)) : NULL;
    if (dot)
        bytes = (size_t)(dot - name);
    if (bytes == 0 || name + bytes == base || bytes > TAR_WRITE_KEY_BYTES - 24 ||
        memchr(name, '\0', bytes) || (bytes >= 2 && memcmp(name, "__", 2) == 0))
        return false;
    memcpy(key, name, bytes);
    key[bytes] = '\0';
    for (const char *at = key; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    }
    return true;
}

/* Write in the order of WebDataset's own writer: class, then image. */
static int tar_write_append(void *state, const struct sample *sample)
{
    struct tar_write *write = state;
    char text[16];

    if (sample->encoding != SAMPLE_ENCODED || sample->image_bytes == 0)
        return fail(EINVAL, "%s: tar shards hold encoded images, not bare pixels",
                    write->sink.file->path);
    if (sample->image_bytes > CATALOG_RECORD_BYTES_MAX)
        return fail(EFBIG, "%s: an image of %zu bytes is too large", write->sink.file->path,
                    sample->image_bytes);
    unsigned long long number = write->records++;
    if (!take_key(write->key, sample))
        snprintf(write->key, sizeof write->key, "%08llu", number);
    const size_t key_bytes = strlen(write->key);
    const uint32_t before = write->keys.count;
    int64_t added = names_number(&write->keys, write->key, key_bytes);
    while (added >= 0 && write->keys.count == before) { /* another sample has this key */
        snprintf(write->key + key_bytes, sizeof write->key - key_bytes, "_%llu", number++);
        added = names_number(&write->keys, write->key, strlen(write->key));
    }
    int code = added < 0 ? (int)added : 0;
    if (code == 0 && sample->label >= 0) {
        int length = snprintf(text, sizeof text, "%d", sample->label);
        code = write_file(write, "cls", text, (size_t)length);
    }
    return code ? code
                : write_file(write, image_extension(sample->image, sample->image_bytes),
                             sample->image, sample->image_bytes);
}

static int tar_write_close(void *state, bool commit)
{
    static const uint8_t end[2 * TAR_BLOCK_BYTES];
    struct tar_write *write = state;
    int code = commit ? sink_write(&write->sink, end, sizeof end) : 0;
    int closed = sink_close(&write->sink, commit && code == 0);

    names_release(&write->keys);
    return code ? code : closed;
}

const struct format_ops format_tar = {
    .plugin = {.name = "tar",
               .summary = "tar shards of WebDataset",
               .options = tar_options,
               .settings_size = sizeof(struct tar_settings),
               .state_size = sizeof(struct tar_write)},
    .detect = tar_detect,
    .takes = wanted,
    .walk = walk_shard,
    .parse = tar_parse,
    .shard_open = tar_write_open,
    .shard_append = tar_write_append,
    .shard_close = tar_write_close,
    .naming = {.digits = 6, .end = ".tar"},
};
