/* SPDX-License-Identifier: Apache-2.0
 *
 * TFRecord shards that hold tf.train.Examples: finding and reading them. A shard may be compressed
 * as a whole; then extents are offsets in the inflated stream. */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/option.h"
#include "dataset/inflate.h"
#include "formats/index_file.h"
#include "formats/plugins.h"
#include "formats/scan.h"
#include "formats/tfrecord_frame.h"
#include "formats/tfrecord_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_PROBES = 64 };

static const char *const base_names[] = {"auto", "0", "1", NULL};
static const char *const compression_names[] = {"none", "gzip", "zlib", NULL};

static const struct option_spec tfrecord_options[] = {
    {.name = "match",
     .type = OPTION_TEXT,
     .offset = offsetof(struct tfrecord_settings, match),
     .metavar = "PATTERN",
     .summary = "in a folder, only files whose names match this shell pattern"},
    {.name = "image",
     .type = OPTION_TEXT,
     .offset = offsetof(struct tfrecord_settings, image),
     .metavar = "KEY",
     .summary = "image feature (default image/encoded, else image)"},
    {.name = "label",
     .type = OPTION_TEXT,
     .offset = offsetof(struct tfrecord_settings, label),
     .metavar = "KEY",
     .summary = "label feature (default image/class/label, else label)"},
    {.name = "label-base",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct tfrecord_settings, base),
     .fallback = "auto",
     .choices = base_names,
     .summary = "number of the first class; auto: 1 for image/class/label, else 0"},
    {.name = "compression",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct tfrecord_settings, compression),
     .fallback = "none",
     .choices = compression_names,
     .summary = "compression of written shards; detected when reading"},
    {.name = "idx",
     .type = OPTION_FLAG,
     .offset = offsetof(struct tfrecord_settings, idx),
     .fallback = "no",
     .summary = "write an .idx file beside each shard, as DALI's tfrecord2idx does"},
    {.name = "max-inflation",
     .type = OPTION_COUNT,
     .offset = offsetof(struct tfrecord_settings, max_inflation),
     .fallback = "200",
     .zero = "none",
     .summary = "reject a compressed shard that inflates to more than this many times its size "
                "and to more than 64 MiB"},
    {.name = "max-index",
     .type = OPTION_SIZE,
     .offset = offsetof(struct tfrecord_settings, max_index_bytes),
     .fallback = "auto",
     .zero = "auto",
     .summary = "largest index of compressed shards; auto: "
                "the size of the data, at least 64 MiB"},
    {0},
};

/* ---- file types ---- */

static bool wanted(const char *name)
{
    uint64_t number, of;

    return strstr(name, ".tfrec") || shard_list_ends(name, ".record") ||
           (shard_list_numbered(name, &number, &of) >= 0 && !shard_list_ends(name, ".rec") &&
            !shard_list_ends(name, ".tar"));
}

static bool head_right(const uint8_t *head)
{
    return bytes_le32(head + 8) == tfrecord_mask(crc32c(0, head, 8));
}

/* Detect compression from the first bytes. Returns 0, SHARD_GZIP (RFC 1952) or SHARD_ZLIB (RFC
 * 1950). Checks for a plain TFRecord first, since it may begin like a compressed file. */
static uint32_t compression_of(const uint8_t *first, size_t count)
{
    if (count >= TFRECORD_HEAD_BYTES && head_right(first))
        return 0;
    if (count >= 3 && first[0] == 0x1f && first[1] == 0x8b && first[2] == 8)
        return SHARD_GZIP;
    if (count >= 2 && (first[0] & 0x0f) == 8 && first[0] >> 4 <= 7 &&
        (first[0] << 8 | first[1]) % 31 == 0)
        return SHARD_ZLIB;
    return 0;
}

static bool tfrecord_takes(const char *name)
{
    return shard_list_takes(name, wanted);
}

static int tfrecord_detect(const char *path)
{
    char *first = shard_list_first(path, wanted);
    uint8_t head[TFRECORD_HEAD_BYTES] = {0};
    int sure = 0;

    if (!first)
        return 0;
    bool named = wanted(file_name(first));
    size_t got = store_peek(first, head, sizeof head);
    if (got == TFRECORD_HEAD_BYTES && head_right(head))
        sure = 100;
    else if (named)
        sure = got > 0 && compression_of(head, got) ? 70 : FORMAT_BY_NAME;
    free(first);
    return sure;
}

/* ---- index: DALI's .idx ---- */

static bool record_at(struct scanner *scanner, const struct index_file_row *row)
{
    int code;
    const uint8_t *head = scanner_at(scanner, row->first, TFRECORD_HEAD_BYTES, &code);

    return head && head_right(head) && bytes_le64(head) == row->second - TFRECORD_FRAME_BYTES;
}

/* Accept the index only if its records cover the file without a gap and the probed records
 * exist. */
static bool index_plausible(struct scanner *scanner, const struct index_file_row *rows,
                            uint64_t count)
{
    uint64_t probes = count < INDEX_PROBES ? count : INDEX_PROBES, end = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (rows[i].first != end || rows[i].second < TFRECORD_FRAME_BYTES ||
            rows[i].second > scanner->file_bytes - end)
            return false;
        end += rows[i].second;
    }
    if (count == 0 || end != scanner->file_bytes)
        return false;
    for (uint64_t probe = 0; probe < probes; probe++)
        if (!record_at(scanner, &rows[probes > 1 ? probe * (count - 1) / (probes - 1) : 0]))
            return false;
    return true;
}

static uint64_t start_of(const struct index_file_row *row)
{
    return row->first;
}

/* Returns 1 if the .idx file was used, 0 if no usable one exists. Verifying checks every header
 * instead. */
static int index_by_idx(struct scanner *scanner, struct catalog *catalog)
{
    struct index_file_row *rows = NULL;
    char *path = tfrecord_index_path(scanner->path);
    uint64_t limit = scanner->file_bytes / TFRECORD_FRAME_BYTES + INDEX_FILE_ROWS_MORE;
    uint64_t count = path ? index_file_read(path, ' ', limit, &rows) : 0;
    int code = index_file_check_cut(scanner, rows, count, start_of, tfrecord_index_path);
    bool use = code == 0 && !scanner->scan->fault && index_plausible(scanner, rows, count);

    for (uint64_t i = 0; use && code == 0 && i < count; i++)
        code = catalog_add(catalog, rows[i].first, rows[i].second);
    free(rows);
    free(path);
    return code ? code : use;
}

/* ---- index: scanning ---- */

/* Measure the record at offset. Returns 0 and its end, 1 and *what is wrong, or an error. */
static int measure_record(struct scanner *scanner, uint64_t offset, uint64_t *end,
                          const char **what)
{
    uint64_t left = scanner->file_bytes - offset;
    int code = 0;

    if (left < TFRECORD_FRAME_BYTES) {
        *what = "the file ends inside the frame of a record";
        return 1;
    }
    const uint8_t *head = scanner_at(scanner, offset, TFRECORD_HEAD_BYTES, &code);
    if (!head)
        return code;
    uint64_t length = bytes_le64(head);
    *what = !head_right(head) ? "no record begins here (the CRC of its length is wrong)"
            : length > left - TFRECORD_FRAME_BYTES ? "the file ends inside a record"
                                                   : NULL;
    if (*what)
        return 1;
    *end = offset + TFRECORD_FRAME_BYTES + length;
    return 0;
}

/* Check the length first, which is cheaper. A length past the end of the file may be right: the
 * file may be truncated. */
static bool may_begin(const struct scanner *scanner, uint64_t offset, const uint8_t *head)
{
    return scanner->file_bytes - offset >= TFRECORD_FRAME_BYTES &&
           bytes_le64(head) <= CATALOG_RECORD_BYTES_MAX && head_right(head);
}

static const struct scan_steps steps = {.measure = measure_record,
                                        .begins = may_begin,
                                        .head_bytes = TFRECORD_HEAD_BYTES,
                                        .alignment = 1};

/* Read one record of the stream. Returns 1, 0 at the end, or an error; sets *what if the frame is
 * damaged. */
static int take_from_stream(struct inflate *stream, struct catalog *catalog, const char **what)
{
    uint64_t offset = inflate_stream_offset(stream);
    uint8_t head[TFRECORD_HEAD_BYTES];
    int64_t got = inflate_read(stream, head, sizeof head);

    if (got <= 0)
        return (int)got;
    if (got < TFRECORD_HEAD_BYTES) {
        *what = "the inflated stream ends inside the frame of a record";
        return -EBADMSG;
    }
    uint64_t length = bytes_le64(head);
    if (!head_right(head)) {
        *what = "no record begins here (the CRC of its length is wrong; offset in the inflated "
                "stream)";
        return -EBADMSG;
    }
    /* Rejected before searching for a petabyte of data. */
    if (length > CATALOG_RECORD_BYTES_MAX - TFRECORD_FRAME_BYTES) {
        *what = "a record larger than 1 GiB less 128 KiB, the most that iobench reads";
        return -EBADMSG;
    }
    got = inflate_read(stream, NULL, length + TFRECORD_TAIL_BYTES);
    if (got >= 0 && (uint64_t)got < length + TFRECORD_TAIL_BYTES) {
        *what = "the inflated stream ends inside a record";
        return -EBADMSG;
    }
    int code = got < 0 ? (int)got : catalog_add(catalog, offset, length + TFRECORD_FRAME_BYTES);
    return code ? code : 1;
}

/* After damage in a compressed stream no further record can be found: the rest of it is lost. */
static int walk_compressed(const struct tfrecord_settings *settings, struct scanner *scanner,
                           struct catalog *catalog, uint32_t flags)
{
    int code = 0;
    struct inflate *stream = inflate_open(scanner->path, flags, &code);

    if (!stream)
        return code;
    inflate_limit(stream, settings->max_inflation);
    catalog_set_compressed(catalog, flags);
    const char *what = NULL;
    uint64_t offset = 0;
    do {
        offset = inflate_stream_offset(stream);
        code = take_from_stream(stream, catalog, &what);
        if (code > 0) {
            int stopped = scanner_report(scanner, inflate_file_offset(stream));
            if (stopped == 0)
                stopped = scanner_count_inflated(scanner, settings->max_index_bytes);
            code = stopped ? stopped : code;
        }
    } while (code > 0);
    if (what)
        code = scanner_fault(scanner, EBADMSG, offset, what);
    else if (code == -EBADMSG)
        code = scanner_fault_recorded(scanner, EBADMSG, inflate_file_offset(stream));
    catalog_set_stream_bytes(catalog, inflate_stream_offset(stream));
    inflate_close(stream);
    return code;
}

static int tfrecord_walk(const void *settings, struct scanner *scanner, struct catalog *catalog)
{
    size_t count = scanner->file_bytes < TFRECORD_HEAD_BYTES ? (size_t)scanner->file_bytes
                                                             : TFRECORD_HEAD_BYTES;
    int code = 0;
    const uint8_t *first = scanner_at(scanner, 0, count, &code);

    if (!first)
        return code;
    uint32_t flags = compression_of(first, count);
    if (flags)
        return walk_compressed(settings, scanner, catalog, flags);
    code = index_by_idx(scanner, catalog);
    if (code)
        return code < 0 ? code : 0;
    return scanner_add_all(scanner, &steps, catalog);
}

static int tfrecord_index(const void *settings, const char *root, const struct format_scan *scan,
                          struct catalog *catalog)
{
    const struct tfrecord_settings *tfrecord = settings;
    struct shard_list list;
    int code = shard_list_open(&list, root, tfrecord->match, wanted);

    if (code == 0)
        code = scan_shards(&list, tfrecord_walk, settings, scan, catalog);
    shard_list_release(&list);
    return code;
}

/* ---- parse ---- */

static int tfrecord_parse(const void *settings, const struct shard *shard, const void *record,
                          size_t bytes, unsigned flags, struct format_scratch *scratch,
                          struct sample *sample)
{
    const uint8_t *head = record, *payload = head + TFRECORD_HEAD_BYTES;
    const struct example_keys keys = tfrecord_keys(settings);

    (void)shard, (void)scratch;
    if (bytes < TFRECORD_FRAME_BYTES)
        return fail(EBADMSG, "a record of %zu bytes is shorter than its frame", bytes);
    uint64_t length = bytes_le64(head);
    if (length != bytes - TFRECORD_FRAME_BYTES)
        return fail(EBADMSG, "record header says %llu bytes, index says %zu",
                    (unsigned long long)length, bytes - TFRECORD_FRAME_BYTES);
    if (!(flags & FORMAT_SKIP_CRC)) {
        if (!head_right(head))
            return fail(EBADMSG, "the CRC of the record's length is wrong");
        if (bytes_le32(payload + length) != tfrecord_mask(crc32c(0, payload, (size_t)length)))
            return fail(EBADMSG, "the CRC of the record is wrong");
    }
    int code = example_parse(&keys, payload, (size_t)length, sample);
    if (code == -EBADMSG && flags & FORMAT_WHOLE) { /* its CRC is right */
        *sample = (struct sample){.image = payload, .image_bytes = (size_t)length, .label = -1};
        return 0;
    }
    return code;
}

static int tfrecord_shard_path(const char *folder, uint32_t shard, uint32_t shards, char **path)
{
    if (shards == 0)
        return 0;
    *path = file_format_path("%s/train-%05u-of-%05u", folder, shard, shards);
    return *path ? 0 : -ENOMEM;
}

const struct format_ops format_shards = {
    .plugin = {.name = "shards",
               .alias = "tfrecord",
               .summary = "TFRecord, as TensorFlow shards ImageNet; also gzip and zlib",
               .options = tfrecord_options,
               .settings_size = sizeof(struct tfrecord_settings),
               .state_size = sizeof(struct tfrecord_writer)},
    .detect = tfrecord_detect,
    .takes = tfrecord_takes,
    .index = tfrecord_index,
    .parse = tfrecord_parse,
    .shard_open = tfrecord_shard_open,
    .shard_append = tfrecord_shard_append,
    .shard_close = tfrecord_shard_close,
    .shard_path = tfrecord_shard_path,
};
