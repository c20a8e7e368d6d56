/* SPDX-License-Identifier: Apache-2.0
 *
 * RecordIO as MXNet's im2rec writes it (dmlc-core recordio, MXNet image_recordio.h).
 *
 * A record is one or more parts, each: u32 magic, u32 kind << 29 | length, the bytes, zeros up to a
 * multiple of 4. The magic never occurs in a part at a multiple of 4: the writer drops those four
 * bytes and begins a new part, and the reader restores them. So after damage reading can resume at
 * the next aligned magic whose kind is WHOLE or FIRST.
 * The payload: u32 flag, f32 label, u64 id, u64 id2, f32 label[flag] if flag > 0, the image. */
#include "formats/plugins.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/option.h"
#include "formats/scan.h"

#include <errno.h>
#include <string.h>

#define MAGIC UINT32_C(0xced7230a)
#define MAGIC_2015 UINT32_C(0x3ed7230a) /* a variant with a 2/30 split of the second word */

enum part_kind { WHOLE = 0, FIRST = 1, MIDDLE = 2, LAST = 3 };

enum {
    PART_BYTES = 8,         /* magic and length word */
    LABEL_BYTES = 24,       /* the payload's header */
    RECORD_LIMIT = 1 << 29, /* payload of one record, exclusive */
    PARTS_TRUSTED = 16,     /* consecutive parts that are no accident */
};

struct recordio_settings {
    char *match;
    bool idx;
};

#define FIELD(field) offsetof(struct recordio_settings, field)
static const struct option_spec recordio_options[] = {
    {"match", 0, OPTION_TEXT, FIELD(match), .metavar = "PATTERN",
     .summary = "in a folder, only files whose names match this shell pattern"},
    {"idx", 0, OPTION_FLAG, FIELD(idx), "yes",
     .summary = "write an .idx file beside each .rec file; an existing one is used"},
    {0},
};

static inline enum part_kind part_kind(const uint8_t *part)
{
    return (enum part_kind)(bytes_le32(part + 4) >> 29);
}

static inline uint32_t part_length(const uint8_t *part)
{
    return bytes_le32(part + 4) & (RECORD_LIMIT - 1);
}

static inline uint32_t padded(uint32_t bytes)
{
    return (uint32_t)bytes_align_up(bytes, 4);
}

static bool wanted(const char *name)
{
    return shard_list_ends(name, ".rec");
}

static int recordio_detect(const char *path)
{
    uint8_t start[4] = {0};
    bool is_named;

    if (shard_list_peek(path, wanted, start, 4, &is_named) == 4 && bytes_le32(start) == MAGIC)
        return is_named ? 100 : 90;
    return is_named ? 30 : 0; /* perhaps damaged: RecordIO's message then helps most */
}

/* ---- index ---- */

/* Measure the record at offset. Returns 0 and its end; 1 and *what if it is damaged; or an
 * error. A wrong length may lead to a part of another record, so the search goes on right after the
 * damaged one; but not into many parts in order, each of which would be walked once for every
 * record that leads to it. */
static int measure_record(struct scanner *scanner, uint64_t offset, uint64_t *end,
                          const char **what)
{
    uint64_t left = scanner->file_bytes - offset, payload = 0, parts = 0;

    for (bool first = true;; first = false, parts++) {
        int code = 0;
        if (parts > PARTS_TRUSTED)
            *end = scanner->file_bytes - left;
        if (left < PART_BYTES) {
            *what = first ? "the file ends inside a record's header"
                          : "the file ends between the parts of a record";
            return 1;
        }
        const uint8_t *part = scanner_at(scanner, scanner->file_bytes - left, PART_BYTES, &code);
        if (!part)
            return code;
        uint32_t length = part_length(part);
        enum part_kind kind = part_kind(part);
        *what = bytes_le32(part) != MAGIC ? first ? "no record begins here (the magic number "
                                                    "0xced7230a is missing)"
                                                  : "the next part of a record is missing"
                : kind > LAST             ? "a part's kind is not 0 to 3"
                : first != (kind == WHOLE || kind == FIRST)
                    ? first ? "a later part of a record without its first"
                            : "a record begins before the one before it has ended"
                : (kind == FIRST || kind == MIDDLE) && length % 4
                    ? "the length of a part that is not the last is not a multiple of 4"
                : padded(length) > left - PART_BYTES ? "the file ends inside a record"
                                                     : NULL;
        payload += length + 4;
        if (!*what && payload > RECORD_LIMIT + 4)
            *what = "a record of more than 512 MiB";
        if (*what)
            return 1;
        left -= PART_BYTES + padded(length);
        if (kind == WHOLE || kind == LAST)
            break;
    }
    *end = scanner->file_bytes - left;
    return 0;
}

static bool part_may_begin(const struct scanner *scanner, uint64_t offset, const uint8_t *part)
{
    (void)scanner, (void)offset;
    return bytes_le32(part) == MAGIC && part_kind(part) <= FIRST;
}

static const char *const extensions[] = {".rec", NULL};
static const struct scan_steps steps = {
    .measure = measure_record,
    .begins = part_may_begin,
    .head_bytes = PART_BYTES,
    .alignment = 4,
    .index = {extensions, .separator = '\t', .has_keys = true, .record_bytes = PART_BYTES}};

static int recordio_walk(const void *settings, struct scanner *scanner, struct catalog *catalog)
{
    int code = 0;
    const uint8_t *word = scanner->file_bytes >= 4 ? scanner_at(scanner, 0, 4, &code) : NULL;

    (void)settings;
    if (word && bytes_le32(word) == MAGIC_2015)
        code = scanner_fault(scanner, ENOTSUP, 0,
                             "RecordIO of 2015 (magic number 0x3ed7230a), an early variant; "
                             "convert it with MXNet's im2rec");
    return code ? code : scanner_add_all(scanner, &steps, catalog);
}

/* ---- parse ---- */

/* Join the parts of a record in scratch. Returns the size of the payload, or a negative errno. */
static int64_t join_parts(const uint8_t *record, size_t bytes, struct format_scratch *scratch)
{
    uint8_t *to = scratch->bytes;
    size_t used = 0, offset = 0;

    for (bool first = true;; first = false) {
        const uint8_t *part = record + offset;
        if (bytes - offset < PART_BYTES || bytes_le32(part) != MAGIC)
            return fail(EBADMSG, "byte %zu of the record: a part of it is missing", offset);
        enum part_kind kind = part_kind(part);
        uint32_t length = part_length(part);
        if (kind != LAST && (kind != (first ? FIRST : MIDDLE) || length % 4))
            return fail(EBADMSG, "byte %zu of the record: its parts are not in order", offset);
        if (padded(length) > bytes - offset - PART_BYTES)
            return fail(EBADMSG, "byte %zu of the record: a part goes past its end", offset);
        if (length + (size_t)4 > scratch->capacity - used)
            return fail(ENOBUFS, "a record of several parts needs more than %zu bytes to be joined",
                        scratch->capacity);
        if (!first) {
            bytes_put_le32(to + used, MAGIC);
            used += 4;
        }
        memcpy(to + used, part + PART_BYTES, length);
        used += length;
        offset += PART_BYTES + padded(length);
        if (kind == LAST)
            break;
    }
    if (offset != bytes)
        return fail(EBADMSG, "byte %zu of the record: %zu bytes follow its end", offset,
                    bytes - offset);
    return (int64_t)used;
}

static int parse_payload(const uint8_t *payload, size_t bytes, struct sample *sample)
{
    if (bytes < LABEL_BYTES)
        return fail(EBADMSG, "the record has %zu bytes, less than its image header of 24", bytes);
    uint32_t flag = bytes_le32(payload);
    float label = bytes_le_float(payload + 4);
    if (flag > (bytes - LABEL_BYTES) / sizeof(float))
        return fail(EBADMSG, "record header says %u labels, more than its %zu bytes can hold", flag,
                    bytes);
    if (flag > 0)
        label = bytes_le_float(payload + LABEL_BYTES);
    sample_set_label(sample, (double)label); /* MXNet stores class numbers as floats */
    sample->id = bytes_le64(payload + 8);
    sample->image = payload + LABEL_BYTES + flag * sizeof(float);
    sample->image_bytes = bytes - LABEL_BYTES - flag * sizeof(float);
    sample->encoding = SAMPLE_ENCODED;
    return 0;
}

static int recordio_parse(const void *settings, const struct shard *shard, const void *record,
                          size_t bytes, unsigned flags, struct format_scratch *scratch,
                          struct sample *sample)
{
    const uint8_t *part = record;

    (void)settings, (void)shard, (void)flags;
    if (bytes < PART_BYTES || bytes_le32(part) != MAGIC)
        return fail(EBADMSG, "no record begins here (the magic number 0xced7230a is missing)");
    if (part_kind(part) == WHOLE) {
        uint32_t length = part_length(part);
        if (padded(length) + (size_t)PART_BYTES != bytes)
            return fail(EBADMSG, "record header says %u bytes, index says %zu", length,
                        bytes - PART_BYTES);
        return parse_payload(part + PART_BYTES, length, sample);
    }
    if (part_kind(part) != FIRST)
        return fail(EBADMSG, "a later part of a record without its first");
    int64_t joined = join_parts(record, bytes, scratch);
    return joined < 0 ? (int)joined : parse_payload(scratch->bytes, (size_t)joined, sample);
}

/* ---- writing ---- */

struct recordio_writer {
    struct sink rec, idx;
    uint64_t records;
};

static int recordio_shard_open(void *state, const void *settings, const char *path)
{
    const struct recordio_settings *recordio = settings;
    struct recordio_writer *writer = state;
    int code = sink_open(&writer->rec, path);

    return code || !recordio->idx ? code : sink_open_index(&writer->idx, path, &steps);
}

/* The payload is in two pieces; the first is a multiple of 4. A part is written whenever the magic
 * occurs, so it may begin in the first piece and end in the second. */
static int write_part(struct sink *sink, const uint8_t *header, const uint8_t *image,
                      enum part_kind kind, uint32_t from, uint32_t to)
{
    static const uint8_t zeros[4];
    uint8_t part[PART_BYTES];
    uint32_t header_end = to < LABEL_BYTES ? to : LABEL_BYTES;

    bytes_put_le32(part, MAGIC);
    bytes_put_le32(part + 4, (uint32_t)kind << 29 | (to - from));
    int code = sink_write(sink, part, sizeof part);
    if (code == 0 && from < header_end)
        code = sink_write(sink, header + from, header_end - from);
    if (code == 0 && to > LABEL_BYTES) {
        uint32_t image_from = from > LABEL_BYTES ? from - LABEL_BYTES : 0;
        code = sink_write(sink, image + image_from, to - LABEL_BYTES - image_from);
    }
    return code ? code : sink_write(sink, zeros, padded(to - from) - (to - from));
}

static int recordio_shard_append(void *state, const struct sample *sample)
{
    struct recordio_writer *writer = state;
    uint8_t header[LABEL_BYTES] = {0};

    if (sample->encoding != SAMPLE_ENCODED)
        return fail(EINVAL, "%s: RecordIO holds encoded images, not bare pixels",
                    writer->rec.file->path);
    if (sample->image_bytes >= RECORD_LIMIT - LABEL_BYTES)
        return fail(EFBIG, "%s: an image of %zu bytes is too large for RecordIO (512 MiB)",
                    writer->rec.file->path, sample->image_bytes);
    bytes_put_le_float(header + 4, (float)sample->label);
    bytes_put_le64(header + 8, sample->id);
    const uint8_t *image = sample->image;
    const uint64_t offset = sink_offset(&writer->rec);
    const uint32_t bytes = LABEL_BYTES + (uint32_t)sample->image_bytes;
    uint32_t from = 0;
    int code = 0;
    for (uint32_t at = 0; code == 0 && at + 4 <= bytes; at += 4) {
        const uint8_t *word = at < LABEL_BYTES ? header + at : image + (at - LABEL_BYTES);
        if (bytes_le32(word) != MAGIC)
            continue;
        code = write_part(&writer->rec, header, image, from ? MIDDLE : FIRST, from, at);
        from = at + 4;
    }
    if (code == 0)
        code = write_part(&writer->rec, header, image, from ? LAST : WHOLE, from, bytes);
    if (code == 0 && writer->idx.buffer)
        code = sink_printf(&writer->idx, "%llu\t%llu\n", (unsigned long long)writer->records,
                           (unsigned long long)offset);
    writer->records++;
    return code;
}

/* Commit the .idx first, so that a .rec file that exists has its index. */
static int recordio_shard_close(void *state, bool commit)
{
    struct recordio_writer *writer = state;
    int code = sink_close(&writer->idx, commit);
    int rec_code = sink_close(&writer->rec, commit && code == 0);

    return code ? code : rec_code;
}

const struct format_ops format_recordio = {
    .plugin = {.name = "recordio",
               .summary = "RecordIO files (.rec) of MXNet",
               .options = recordio_options,
               .settings_size = sizeof(struct recordio_settings),
               .state_size = sizeof(struct recordio_writer)},
    .detect = recordio_detect,
    .takes = wanted,
    .walk = recordio_walk,
    .parse = recordio_parse,
    .shard_open = recordio_shard_open,
    .shard_append = recordio_shard_append,
    .shard_close = recordio_shard_close,
    .naming = {.alone = "train.rec", .digits = 5, .has_count = true, .end = ".rec"},
};
