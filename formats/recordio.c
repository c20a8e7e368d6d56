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
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "formats/index_file.h"
#include "formats/scan.h"
#include "formats/sink.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT32_C(0xced7230a)
#define MAGIC_2015 UINT32_C(0x3ed7230a) /* a variant with a 2/30 split of the second word */

enum part_kind { WHOLE = 0, FIRST = 1, MIDDLE = 2, LAST = 3 };

enum {
    PART_BYTES = 8,         /* magic and length word */
    LABEL_BYTES = 24,       /* the payload's header */
    RECORD_LIMIT = 1 << 29, /* payload of one record, exclusive */
    INDEX_PROBES = 64,
    PARTS_TRUSTED = 16, /* consecutive parts that are no accident */
};

struct recordio_settings {
    char *match;
    bool idx;
};

static const struct option_spec recordio_options[] = {
    {.name = "match",
     .type = OPTION_TEXT,
     .offset = offsetof(struct recordio_settings, match),
     .metavar = "PATTERN",
     .summary = "in a folder, only files whose names match this shell pattern"},
    {.name = "idx",
     .type = OPTION_FLAG,
     .offset = offsetof(struct recordio_settings, idx),
     .fallback = "yes",
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

static bool recordio_takes(const char *name)
{
    return shard_list_takes(name, wanted);
}

static int recordio_detect(const char *path)
{
    char *first = shard_list_first(path, wanted);
    uint8_t bytes[4] = {0};
    int sure = 0;

    if (!first)
        return 0;
    if (store_peek(first, bytes, 4) == 4 && bytes_le32(bytes) == MAGIC)
        sure = 90;
    if (wanted(first))
        sure = sure ? 100 : 30; /* perhaps damaged: RecordIO's message then helps most */
    free(first);
    return sure;
}

/* ---- index: the .idx file ---- */

static char *recordio_index_path(const char *path)
{
    static const char *const extensions[] = {".rec", NULL};

    return index_file_path(path, extensions);
}

static int compare_rows(const void *a, const void *b)
{
    const struct index_file_row *x = a, *y = b;

    return (x->second > y->second) - (x->second < y->second);
}

/* Read the offsets, in the second column, and sort them. MXNet's readers sort them too, since
 * shuffled files are common. */
static uint64_t read_offsets(struct scanner *scanner, struct index_file_row **rows)
{
    char *path = recordio_index_path(scanner->path);
    uint64_t limit = scanner->file_bytes / PART_BYTES + INDEX_FILE_ROWS_MORE;
    uint64_t count = path ? index_file_read(path, '\t', limit, rows) : 0;

    free(path);
    for (uint64_t i = 1; i < count; i++) {
        if ((*rows)[i].second < (*rows)[i - 1].second) {
            qsort(*rows, count, sizeof **rows, compare_rows);
            break;
        }
    }
    return count;
}

static uint64_t record_end(const struct scanner *scanner, const struct index_file_row *rows,
                           uint64_t count, uint64_t i)
{
    return i + 1 < count ? rows[i + 1].second : scanner->file_bytes;
}

/* Return whether one record exactly spans offset to end. */
static bool record_spans(struct scanner *scanner, uint64_t offset, uint64_t end)
{
    for (bool first = true; end - offset >= PART_BYTES; first = false) {
        int code;
        const uint8_t *part = scanner_at(scanner, offset, PART_BYTES, &code);
        if (!part || bytes_le32(part) != MAGIC)
            return false;
        enum part_kind kind = part_kind(part);
        uint32_t bytes = padded(part_length(part)) + PART_BYTES;
        if (bytes > end - offset || first != (kind == WHOLE || kind == FIRST))
            return false;
        offset += bytes;
        if (kind == WHOLE || kind == LAST)
            return offset == end;
    }
    return false;
}

/* An index may belong to another file, or to a part of this one. So it is accepted only if it
 * begins at the first record, and records probed across the file exactly span one offset to the
 * next. */
static bool index_plausible(struct scanner *scanner, const struct index_file_row *rows,
                            uint64_t count)
{
    uint64_t probes = count < INDEX_PROBES ? count : INDEX_PROBES;

    if (count == 0 || rows[0].second != 0 || rows[count - 1].second >= scanner->file_bytes)
        return false;
    for (uint64_t i = 1; i < count; i++)
        if (rows[i].second == rows[i - 1].second)
            return false;
    for (uint64_t probe = 0; probe < probes; probe++) {
        uint64_t i = probes > 1 ? probe * (count - 1) / (probes - 1) : 0;
        if (!record_spans(scanner, rows[i].second, record_end(scanner, rows, count, i)))
            return false;
    }
    return true;
}

static uint64_t start_of(const struct index_file_row *row)
{
    return row->second;
}

/* Returns 1 if the .idx file was used, 0 if no usable one exists. Verifying checks every header
 * instead. */
static int index_by_idx(struct scanner *scanner, struct catalog *catalog)
{
    struct index_file_row *rows = NULL;
    uint64_t count = read_offsets(scanner, &rows);
    int code = index_file_check_cut(scanner, rows, count, start_of, recordio_index_path);
    bool use = code == 0 && !scanner->scan->fault && index_plausible(scanner, rows, count);

    for (uint64_t i = 0; use && code == 0 && i < count; i++)
        code = catalog_add(catalog, rows[i].second,
                           record_end(scanner, rows, count, i) - rows[i].second);
    free(rows);
    return code ? code : use;
}

/* ---- index: scanning ---- */

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

static bool may_begin(const struct scanner *scanner, uint64_t offset, const uint8_t *part)
{
    (void)scanner;
    (void)offset;
    return bytes_le32(part) == MAGIC && part_kind(part) <= FIRST;
}

static int refuse_2015(struct scanner *scanner)
{
    int code = 0;
    const uint8_t *word = scanner->file_bytes >= 4 ? scanner_at(scanner, 0, 4, &code) : NULL;

    if (word && bytes_le32(word) == MAGIC_2015)
        return scanner_fault(scanner, ENOTSUP, 0,
                             "RecordIO of 2015 (magic number 0x3ed7230a), an early variant; "
                             "convert it with MXNet's im2rec");
    return code;
}

static const struct scan_steps steps = {
    .measure = measure_record, .begins = may_begin, .head_bytes = PART_BYTES, .alignment = 4};

static int recordio_walk(const void *settings, struct scanner *scanner, struct catalog *catalog)
{
    int code = refuse_2015(scanner);

    (void)settings;
    if (code == 0)
        code = index_by_idx(scanner, catalog);
    if (code)
        return code < 0 ? code : 0;
    return scanner_add_all(scanner, &steps, catalog);
}

static int recordio_index(const void *settings, const char *root, const struct format_scan *scan,
                          struct catalog *catalog)
{
    const struct recordio_settings *recordio = settings;
    struct shard_list list;
    int code = shard_list_open(&list, root, recordio->match, wanted);

    if (code == 0)
        code = scan_shards(&list, recordio_walk, settings, scan, catalog);
    shard_list_release(&list);
    return code;
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

    if (code == 0 && recordio->idx) {
        char *beside = recordio_index_path(path);
        code = beside ? sink_open(&writer->idx, beside) : -ENOMEM;
        free(beside);
    }
    return code;
}

/* The payload is in two pieces; the first is a multiple of 4. A part is written whenever the magic
 * occurs, so it may begin in the first piece and end in the second. */
struct payload {
    const uint8_t *header;
    const uint8_t *image;
    uint32_t image_bytes;
};

static uint32_t payload_word(const struct payload *payload, uint32_t at)
{
    return at < LABEL_BYTES ? bytes_le32(payload->header + at)
                            : bytes_le32(payload->image + (at - LABEL_BYTES));
}

static int write_part(struct sink *sink, const struct payload *payload, enum part_kind kind,
                      uint32_t from, uint32_t to)
{
    static const uint8_t zeros[4];
    uint8_t part[PART_BYTES];
    uint32_t header_end = to < LABEL_BYTES ? to : LABEL_BYTES;

    bytes_put_le32(part, MAGIC);
    bytes_put_le32(part + 4, (uint32_t)kind << 29 | (to - from));
    int code = sink_write(sink, part, sizeof part);
    if (code == 0 && from < header_end)
        code = sink_write(sink, payload->header + from, header_end - from);
    if (code == 0 && to > LABEL_BYTES) {
        uint32_t image_from = from > LABEL_BYTES ? from - LABEL_BYTES : 0;
        code = sink_write(sink, payload->image + image_from, to - LABEL_BYTES - image_from);
    }
    return code ? code : sink_write(sink, zeros, padded(to - from) - (to - from));
}

static int write_payload(struct sink *sink, const struct payload *payload)
{
    uint32_t bytes = LABEL_BYTES + payload->image_bytes, from = 0;
    int code = 0;

    for (uint32_t at = 0; code == 0 && at + 4 <= bytes; at += 4) {
        if (payload_word(payload, at) != MAGIC)
            continue;
        code = write_part(sink, payload, from ? MIDDLE : FIRST, from, at);
        from = at + 4;
    }
    return code ? code : write_part(sink, payload, from ? LAST : WHOLE, from, bytes);
}

static int recordio_shard_append(void *state, const struct sample *sample)
{
    struct recordio_writer *writer = state;
    uint8_t header[LABEL_BYTES] = {0};

    if (sample->encoding != SAMPLE_ENCODED)
        return fail(EINVAL, "%s: RecordIO holds encoded images, not bare pixels",
                    writer->rec.draft.path);
    if (sample->image_bytes >= RECORD_LIMIT - LABEL_BYTES)
        return fail(EFBIG, "%s: an image of %zu bytes is too large for RecordIO (512 MiB)",
                    writer->rec.draft.path, sample->image_bytes);
    bytes_put_le_float(header + 4, (float)sample->label);
    bytes_put_le64(header + 8, sample->id);
    const struct payload payload = {
        .header = header, .image = sample->image, .image_bytes = (uint32_t)sample->image_bytes};
    uint64_t offset = sink_offset(&writer->rec);
    int code = write_payload(&writer->rec, &payload);
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

static int recordio_shard_path(const char *folder, uint32_t shard, uint32_t shards, char **path)
{
    if (shards == 0)
        return 0;
    *path = shards == 1 ? file_join(folder, "train.rec")
                        : file_format_path("%s/train-%05u-of-%05u.rec", folder, shard, shards);
    return *path ? 0 : -ENOMEM;
}

const struct format_ops format_recordio = {
    .plugin = {.name = "recordio",
               .summary = "RecordIO files (.rec) of MXNet",
               .options = recordio_options,
               .settings_size = sizeof(struct recordio_settings),
               .state_size = sizeof(struct recordio_writer)},
    .detect = recordio_detect,
    .takes = recordio_takes,
    .index = recordio_index,
    .parse = recordio_parse,
    .shard_open = recordio_shard_open,
    .shard_append = recordio_shard_append,
    .shard_close = recordio_shard_close,
    .shard_path = recordio_shard_path,
};
