/* SPDX-License-Identifier: Apache-2.0
 *
 * TFRecord shards that hold tf.train.Examples: finding and reading them. A shard may be compressed
 * as a whole; then extents are offsets in the inflated stream. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/image_header.h"
#include "base/sample.h"
#include "base/memory.h"
#include "base/option.h"
#include "dataset/inflate.h"
#include "formats/plugins.h"
#include "formats/protobuf.h"
#include "formats/scan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The frame (tensorflow/core/lib/io/record_writer.h): u64 length, u32 masked CRC-32C of those 8
 * bytes, the payload, u32 masked CRC-32C of the payload. */
enum example_base { EXAMPLE_BASE_AUTO, EXAMPLE_BASE_0, EXAMPLE_BASE_1 };

enum { EXAMPLE_HEAD_BYTES = 8192 };

enum tfrecord_frame {
    TFRECORD_HEAD_BYTES = 12,
    TFRECORD_TAIL_BYTES = 4,
    TFRECORD_FRAME_BYTES = 16,
};

enum tfrecord_compression { TFRECORD_PLAIN, TFRECORD_GZIP, TFRECORD_ZLIB };

struct tfrecord_settings {
    char *match;
    char *image;     /* NULL: image/encoded, else image as in TensorFlow Datasets */
    char *label;     /* NULL: image/class/label, else label */
    int base;        /* enum example_base */
    int compression; /* enum tfrecord_compression, for writing */
    bool idx;        /* write an index */
    uint64_t max_inflation, max_index_bytes; /* of compressed shards */
};

/* Mask stored CRCs, since data may contain CRCs. */
static uint32_t tfrecord_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static const char *const base_names[] = {"auto", "0", "1", NULL};
static const char *const compression_names[] = {"none", "gzip", "zlib", NULL};

#define FIELD(field) offsetof(struct tfrecord_settings, field)
static const struct option_spec tfrecord_options[] = {
    {"match", 0, OPTION_TEXT, FIELD(match), .metavar = "PATTERN",
     .summary = "in a folder, only files whose names match this shell pattern"},
    {"image", 0, OPTION_TEXT, FIELD(image), .metavar = "KEY",
     .summary = "image feature (default image/encoded, else image)"},
    {"label", 0, OPTION_TEXT, FIELD(label), .metavar = "KEY",
     .summary = "label feature (default image/class/label, else label)"},
    {"label-base", 0, OPTION_CHOICE, FIELD(base), "auto", .choices = base_names,
     .summary = "number of the first class; auto: 1 for image/class/label, else 0"},
    {"compression", 0, OPTION_CHOICE, FIELD(compression), "none", .choices = compression_names,
     .summary = "compression of written shards; detected when reading"},
    {"idx", 0, OPTION_FLAG, FIELD(idx), "no",
     .summary = "write an .idx file beside each shard, as DALI's tfrecord2idx does"},
    {"max-inflation", 0, OPTION_COUNT, FIELD(max_inflation), "200", .zero = "none",
     .summary = "reject a compressed shard that inflates to more than this many times its size "
                "and to more than 64 MiB"},
    {"max-index", 0, OPTION_SIZE, FIELD(max_index_bytes), "auto", .zero = "auto",
     .summary = "largest index of compressed shards; auto: "
                "the size of the data, at least 64 MiB"},
    {0},
};

/* ---- tf.train.Example ----
 *
 * Example{Features features=1}, Features{map<string,Feature> feature=1}, Feature{oneof{BytesList=1,
 * FloatList=2, Int64List=3}}, each {repeated value=1}. Read in place. */

enum feature_kind { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

/* Field numbers at each nesting level, and of a Feature's value lists. */
enum { FEATURES = 1, FEATURE_LISTS = 2, FEATURE = 1, MAP_KEY = 1, MAP_VALUE = 2, LIST_VALUE = 1 };

static const char image_key[] = "image/encoded", label_key[] = "image/class/label";

/* The features to look for; the preferred key of a pair comes first. */
enum { IMAGE, IMAGE_OTHER, LABEL, LABEL_OTHER, NAME, NAME_OTHER, MATCHES };

struct feature_match {
    const char *key; /* NULL: unused */
    size_t key_bytes;
    struct protobuf_field feature; /* bytes NULL: not found */
};

static int damaged(void)
{
    return fail(EBADMSG, "the record's Example (a protocol-buffer message) is damaged, or the "
                         "record holds something else; --decode=none reads records whole");
}

/* Features found, for a message. */
struct feature_names {
    char text[256];
    size_t used;
    bool are_lists; /* some, as in a SequenceExample */
};

static int take_entry(struct feature_match *matches, const struct protobuf_field *entry,
                      struct feature_names *names)
{
    struct protobuf_cursor cursor = protobuf_nested(entry);
    struct protobuf_field field, key = {.bytes = (const uint8_t *)""}, value = {0};
    int got;

    while ((got = protobuf_next(&cursor, &field)) > 0) {
        if (field.wire == PROTOBUF_BYTES && field.number == MAP_KEY)
            key = field;
        else if (field.wire == PROTOBUF_BYTES && field.number == MAP_VALUE)
            value = field;
    }
    if (names) {
        if (names->used < sizeof names->text)
            names->used +=
                (size_t)snprintf(names->text + names->used, sizeof names->text - names->used,
                                 "%s%.*s", names->used ? ", " : "",
                                 key.count < 64 ? (int)key.count : 64, (const char *)key.bytes);
    }
    for (int i = 0; i < MATCHES && got == 0; i++)
        if (matches[i].key && matches[i].key_bytes == key.count &&
            memcmp(matches[i].key, key.bytes, key.count) == 0)
            matches[i].feature = value; /* the last entry of a key counts */
    return got;
}

/* names: NULL, or to add the names found, those of a SequenceExample's lists too. */
static int find_features(struct feature_match *matches, const void *message, size_t bytes,
                         struct feature_names *names)
{
    struct protobuf_cursor example = protobuf_start(message, bytes), features;
    struct protobuf_field field, entry;
    int got, inner = 0;

    while ((got = protobuf_next(&example, &field)) > 0) {
        if (field.wire != PROTOBUF_BYTES ||
            (field.number != FEATURES && !(names && field.number == FEATURE_LISTS)))
            continue;
        if (names)
            names->are_lists |= field.number == FEATURE_LISTS;
        features = protobuf_nested(&field);
        while ((inner = protobuf_next(&features, &entry)) > 0)
            if (entry.wire == PROTOBUF_BYTES && entry.number == FEATURE &&
                take_entry(matches, &entry, names))
                return -EBADMSG;
        if (inner < 0)
            return inner;
    }
    return got;
}

/* Get the list in a Feature, the last one if there are several. Returns 0 if there is none. */
static int feature_list(const struct protobuf_field *feature, struct protobuf_field *list)
{
    struct protobuf_cursor cursor = protobuf_nested(feature);
    struct protobuf_field field;
    int got, kind = 0;

    while ((got = protobuf_next(&cursor, &field)) > 0) {
        if (field.wire == PROTOBUF_BYTES && field.number >= BYTES_LIST &&
            field.number <= INT64_LIST) {
            *list = field;
            kind = (int)field.number;
        }
    }
    return got < 0 ? got : kind;
}

/* Get the first byte string of a Feature. Returns 1, 0 if it is empty, -ENOENT if it has numbers,
 * or -EBADMSG. */
static int first_bytes(const struct protobuf_field *feature, struct protobuf_field *value)
{
    struct protobuf_field list;
    int kind = feature_list(feature, &list);

    if (kind != BYTES_LIST)
        return kind > 0 ? -ENOENT : kind;
    struct protobuf_cursor cursor = protobuf_nested(&list);
    int got;
    while ((got = protobuf_next(&cursor, value)) > 0)
        if (value->wire == PROTOBUF_BYTES && value->number == LIST_VALUE)
            return 1;
    return got;
}

/* Get the first number of a Feature, packed or not. Returns 1, 0 if there is none, or -EBADMSG. */
static int first_number(const struct protobuf_field *feature, double *number)
{
    struct protobuf_field list, value;
    int kind = feature_list(feature, &list), got;

    if (kind != INT64_LIST && kind != FLOAT_LIST)
        return kind < 0 ? kind : 0;
    struct protobuf_cursor cursor = protobuf_nested(&list);
    while ((got = protobuf_next(&cursor, &value)) > 0) {
        if (value.number != LIST_VALUE || (value.wire == PROTOBUF_BYTES && value.count == 0))
            continue;
        if (kind == FLOAT_LIST) {
            uint8_t fixed[4];
            if (value.wire == PROTOBUF_BYTES ? value.count < 4 : value.wire != PROTOBUF_FIXED32)
                return -EBADMSG;
            bytes_put_le32(fixed, (uint32_t)value.value);
            *number = (double)bytes_le_float(value.wire == PROTOBUF_BYTES ? value.bytes : fixed);
            return 1;
        }
        struct protobuf_cursor packed = protobuf_nested(&value);
        if (value.wire == PROTOBUF_BYTES && protobuf_varint(&packed, &value.value) != 1)
            return -EBADMSG;
        if (value.wire != PROTOBUF_BYTES && value.wire != PROTOBUF_VARINT)
            return -EBADMSG;
        *number = (double)(int64_t)value.value;
        return 1;
    }
    return got;
}

static int label_base(const struct tfrecord_settings *keys, const char *key)
{
    return keys->base == EXAMPLE_BASE_AUTO ? strcmp(key, label_key) == 0
                                           : keys->base == EXAMPLE_BASE_1;
}

static const struct feature_match *found_of(const struct feature_match *matches, int first)
{
    return matches[first].feature.bytes       ? &matches[first]
           : matches[first + 1].feature.bytes ? &matches[first + 1]
                                              : NULL;
}

/* Parse image, label and name of the Example. Returns 0, or -EBADMSG with a reason. */
static int example_parse(const struct tfrecord_settings *keys, const void *message, size_t bytes,
                         struct sample *sample)
{
    struct feature_match matches[MATCHES] = {
        [IMAGE] = {.key = keys->image ? keys->image : image_key},
        [IMAGE_OTHER] = {.key = keys->image ? NULL : "image"},
        [LABEL] = {.key = keys->label ? keys->label : label_key},
        [LABEL_OTHER] = {.key = keys->label ? NULL : "label"},
        [NAME] = {.key = "image/filename"},
        [NAME_OTHER] = {.key = "file_name"},
    };
    struct protobuf_field value;

    for (int i = 0; i < MATCHES; i++)
        matches[i].key_bytes = matches[i].key ? strlen(matches[i].key) : 0;
    if (find_features(matches, message, bytes, NULL))
        return damaged();
    const struct feature_match *image = found_of(matches, IMAGE), *label = found_of(matches, LABEL),
                               *name = found_of(matches, NAME);
    if (!image) {
        struct feature_names names = {0};
        find_features(matches, message, bytes, &names);
        return fail(EBADMSG,
                    "the record's %s has no feature %s%s but: %s; choose one with image=KEY, or "
                    "read records whole with --decode=none",
                    names.are_lists ? "SequenceExample, whose lists are not read," : "Example",
                    matches[IMAGE].key, keys->image ? "" : " or image",
                    names.used ? names.text : "none");
    }
    int got = first_bytes(&image->feature, &value);
    if (got < 0)
        return got == -EBADMSG ? damaged()
                               : fail(EBADMSG,
                                      "feature %s holds numbers, not an image; --decode "
                                      "none reads records whole",
                                      image->key);
    sample->image = value.bytes;
    sample->image_bytes = got ? value.count : 0;
    sample->encoding = SAMPLE_ENCODED;
    if (name && (got = first_bytes(&name->feature, &value)) == -EBADMSG)
        return damaged();
    if (name && got > 0) {
        sample->name = (const char *)value.bytes;
        sample->name_bytes = value.count;
    }
    double number = 0;
    got = label ? first_number(&label->feature, &number) : -ENOENT;
    if (got > 0)
        sample_set_label(sample, number - label_base(keys, label->key));
    else if (got == 0 && (got = first_bytes(&label->feature, &value)) > 0)
        sample_set_label_text(sample, (const char *)value.bytes, value.count);
    return got == -EBADMSG ? damaged() : 0;
}

/* Write the tag and length of a bytes field; the bytes follow. */
static uint8_t *put_nested(uint8_t *to, uint32_t number, size_t bytes)
{
    return protobuf_put_varint(protobuf_put_tag(to, number, PROTOBUF_BYTES), bytes);
}

static size_t nested_bytes(size_t bytes)
{
    return 1 + protobuf_varint_bytes(bytes) + bytes;
}

/* Write a map entry up to its value; the value_bytes bytes of the value follow. */
static uint8_t *put_entry(uint8_t *to, const char *key, enum feature_kind kind, size_t value_bytes)
{
    size_t list_bytes = nested_bytes(value_bytes), feature_bytes = nested_bytes(list_bytes);
    size_t key_bytes = strlen(key);

    to = put_nested(to, FEATURE, nested_bytes(key_bytes) + nested_bytes(feature_bytes));
    to = put_nested(to, MAP_KEY, key_bytes);
    memcpy(to, key, key_bytes);
    to = put_nested(to + key_bytes, MAP_VALUE, feature_bytes);
    to = put_nested(to, (uint32_t)kind, list_bytes);
    return put_nested(to, LIST_VALUE, value_bytes);
}

static uint8_t *put_text(uint8_t *to, const char *key, const char *text, size_t bytes)
{
    to = put_entry(to, key, BYTES_LIST, bytes);
    memcpy(to, text, bytes);
    return to + bytes;
}

static uint8_t *put_number(uint8_t *to, const char *key, uint64_t number)
{
    to = put_entry(to, key, INT64_LIST, protobuf_varint_bytes(number));
    return protobuf_put_varint(to, number);
}

/* Write the Example of a sample to head, except the image bytes, which come last. Returns the
 * number of bytes, or a negative errno. */
static int example_head(const struct tfrecord_settings *keys, const struct sample *sample,
                        uint8_t head[EXAMPLE_HEAD_BYTES])
{
    const char *image = keys->image ? keys->image : image_key;
    const char *label = keys->label ? keys->label : label_key;
    struct image_header header; /* as many fields of it as the image has */
    image_header_read(sample->image, sample->image_bytes, &header);
    const char *kind = header.kind == IMAGE_UNKNOWN ? "PNG" : image_kind_name(header.kind);
    const uint32_t channels = header.palette ? 3 : header.components;
    const char *colours = channels == 1 ? "Grayscale" : channels == 4 ? "CMYK" : "RGB";
    int base = label_base(keys, label);
    uint8_t features[EXAMPLE_HEAD_BYTES], *to = features;

    if (sample->name_bytes > EXAMPLE_HEAD_BYTES / 2 ||
        strlen(image) + strlen(label) > EXAMPLE_HEAD_BYTES / 8)
        return fail(ENAMETOOLONG, "a name of %zu bytes is too long for a record",
                    sample->name_bytes);
    if (sample->label >= 0 || base)
        to = put_number(to, label, (uint64_t)(sample->label + (int64_t)base));
    if (header.kind != IMAGE_UNKNOWN)
        to = put_text(to, "image/format", kind, strlen(kind));
    if (header.width) {
        to = put_number(to, "image/height", header.height);
        to = put_number(to, "image/width", header.width);
        to = put_number(to, "image/channels", channels);
        to = put_text(to, "image/colorspace", colours, strlen(colours));
    }
    if (sample->name_bytes)
        to = put_text(to, "image/filename", sample->name, sample->name_bytes);
    to = put_entry(to, image, BYTES_LIST, sample->image_bytes);
    size_t used = (size_t)(to - features);
    to = put_nested(head, FEATURES, used + sample->image_bytes);
    assert(used + (size_t)(to - head) <= EXAMPLE_HEAD_BYTES);
    memcpy(to, features, used);
    return (int)(used + (size_t)(to - head));
}

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

static int tfrecord_detect(const char *path)
{
    uint8_t head[TFRECORD_HEAD_BYTES] = {0};
    bool is_named;
    const size_t got = shard_list_peek(path, wanted, head, sizeof head, &is_named);

    if (got == TFRECORD_HEAD_BYTES && head_right(head))
        return 100;
    return !is_named ? 0 : got > 0 && compression_of(head, got) ? 70 : FORMAT_BY_NAME;
}

/* ---- index ---- */

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
static bool head_may_begin(const struct scanner *scanner, uint64_t offset, const uint8_t *head)
{
    return scanner->file_bytes - offset >= TFRECORD_FRAME_BYTES &&
           bytes_le64(head) <= CATALOG_RECORD_BYTES_MAX && head_right(head);
}

static const char *const extensions[] = {".tfrecord", ".tfrecords", NULL};
static const struct scan_steps steps = {
    .measure = measure_record,
    .begins = head_may_begin,
    .head_bytes = TFRECORD_HEAD_BYTES,
    .alignment = 1,
    .index = {extensions, .separator = ' ', .record_bytes = TFRECORD_FRAME_BYTES}}; /* DALI's */

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
    uint64_t offset;
    for (;;) {
        uint8_t head[TFRECORD_HEAD_BYTES] = {0};
        offset = inflate_stream_offset(stream);
        int64_t got = inflate_read(stream, head, sizeof head);
        code = got < 0 ? (int)got : 0;
        if (got <= 0)
            break;
        const uint64_t length = bytes_le64(head);
        what = got < TFRECORD_HEAD_BYTES ? "the inflated stream ends inside the frame of a record"
               : !head_right(head)
                   ? "no record begins here (the CRC of its length is wrong; offset in the "
                     "inflated stream)"
               : length > CATALOG_RECORD_BYTES_MAX - TFRECORD_FRAME_BYTES
                   ? "a record larger than 1 GiB less 128 KiB, the most that iobench reads"
                   : NULL; /* checked before inflating up to a petabyte in search of the end */
        if (what)
            break;
        got = inflate_read(stream, NULL, length + TFRECORD_TAIL_BYTES);
        if (got >= 0 && (uint64_t)got < length + TFRECORD_TAIL_BYTES) {
            what = "the inflated stream ends inside a record";
            break;
        }
        code = got < 0 ? (int)got : catalog_add(catalog, offset, length + TFRECORD_FRAME_BYTES);
        if (code == 0)
            code = scanner_report(scanner, inflate_file_offset(stream));
        if (code == 0)
            code = scanner_count_inflated(scanner, settings->max_index_bytes);
        if (code)
            break;
    }
    if (what)
        code = scanner_fault(scanner, EBADMSG, offset, what);
    else if (code == -EBADMSG)
        code = scanner_fault_recorded(scanner, EBADMSG, inflate_file_offset(stream));
    catalog_last(catalog)->stream_bytes = inflate_stream_offset(stream);
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
    return flags ? walk_compressed(settings, scanner, catalog, flags)
                 : scanner_add_all(scanner, &steps, catalog);
}

/* ---- parse ---- */

static int tfrecord_parse(const void *settings, const struct shard *shard, const void *record,
                          size_t bytes, unsigned flags, struct format_scratch *scratch,
                          struct sample *sample)
{
    const uint8_t *head = record, *payload = head + TFRECORD_HEAD_BYTES;

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
    int code = example_parse(settings, payload, (size_t)length, sample);
    if (code == -EBADMSG && flags & FORMAT_WHOLE) { /* its CRC is right */
        *sample = (struct sample){.image = payload, .image_bytes = (size_t)length, .label = -1};
        return 0;
    }
    return code;
}

/* ---- writing ---- */

struct tfrecord_writer {
    struct sink sink, idx;
    const struct tfrecord_settings *settings;
    uint8_t *head; /* of the Example being written */
    z_stream stream;
    bool stream_open;
    uint8_t *packed; /* NULL: not compressed */
};

enum { PACKED_BYTES = 64 * 1024 };

/* Compress the input and write the output; at the end of the shard, flush it. */
static int deflate_out(struct tfrecord_writer *writer, const void *bytes, size_t count, int flush)
{
    z_stream *stream = &writer->stream;
    int result, code = 0;

    stream->next_in = (Bytef *)(uintptr_t)bytes;
    stream->avail_in = (uInt)count;
    do {
        stream->next_out = writer->packed;
        stream->avail_out = PACKED_BYTES;
        result = deflate(stream, flush);
        if (result == Z_STREAM_ERROR)
            return fail(EIO, "%s: deflate failed", writer->sink.file->path);
        code = sink_write(&writer->sink, writer->packed, PACKED_BYTES - stream->avail_out);
    } while (code == 0 && (flush == Z_FINISH ? result != Z_STREAM_END : stream->avail_out == 0));
    return code;
}

static int write_bytes(struct tfrecord_writer *writer, const void *bytes, size_t count)
{
    enum { MOST = 1 << 30 }; /* zlib takes an unsigned int */
    const uint8_t *at = bytes;
    int code = 0;

    if (!writer->packed)
        return sink_write(&writer->sink, bytes, count);
    while (code == 0 && count > 0) {
        size_t part = count < MOST ? count : MOST;
        code = deflate_out(writer, at, part, Z_NO_FLUSH);
        at += part;
        count -= part;
    }
    return code;
}

static int tfrecord_shard_open(void *state, const void *settings, const char *path)
{
    const struct tfrecord_settings *tfrecord = settings;
    struct tfrecord_writer *writer = state;

    writer->settings = settings;
    if (tfrecord->idx && tfrecord->compression != TFRECORD_PLAIN)
        return fail(EINVAL, "%s: a compressed shard cannot use an .idx file; set idx=no", path);
    writer->head = memory_zeroed(EXAMPLE_HEAD_BYTES);
    int code = writer->head ? sink_open(&writer->sink, path) : -ENOMEM;
    if (code == 0 && tfrecord->compression != TFRECORD_PLAIN) {
        /* zlib.h: 16 more selects a gzip wrapper. */
        const int window = MAX_WBITS + (tfrecord->compression == TFRECORD_GZIP ? 16 : 0);
        writer->packed = memory_zeroed(PACKED_BYTES);
        if (!writer->packed)
            return -ENOMEM;
        writer->stream_open = deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                           window, 8, Z_DEFAULT_STRATEGY) == Z_OK;
        if (!writer->stream_open)
            code = fail(ENOMEM, "out of memory to compress");
    }
    return code || !tfrecord->idx ? code : sink_open_index(&writer->idx, path, &steps);
}

static int tfrecord_shard_append(void *state, const struct sample *sample)
{
    struct tfrecord_writer *writer = state;
    uint8_t frame[TFRECORD_HEAD_BYTES], tail[TFRECORD_TAIL_BYTES];
    uint64_t offset = sink_offset(&writer->sink);

    if (sample->encoding != SAMPLE_ENCODED)
        return fail(EINVAL, "%s: an Example holds an encoded image, not bare pixels",
                    writer->sink.file->path);
    int head_bytes = example_head(writer->settings, sample, writer->head);
    if (head_bytes < 0)
        return head_bytes;
    uint64_t length = (uint64_t)head_bytes + sample->image_bytes;
    bytes_put_le64(frame, length);
    bytes_put_le32(frame + 8, tfrecord_mask(crc32c(0, frame, 8)));
    uint32_t crc = crc32c(0, writer->head, (size_t)head_bytes);
    bytes_put_le32(tail, tfrecord_mask(crc32c(crc, sample->image, sample->image_bytes)));
    int code = write_bytes(writer, frame, sizeof frame);
    if (code == 0)
        code = write_bytes(writer, writer->head, (size_t)head_bytes);
    if (code == 0)
        code = write_bytes(writer, sample->image, sample->image_bytes);
    if (code == 0)
        code = write_bytes(writer, tail, sizeof tail);
    if (code == 0 && writer->idx.buffer)
        code = sink_printf(&writer->idx, "%llu %llu\n", (unsigned long long)offset,
                           (unsigned long long)(length + TFRECORD_FRAME_BYTES));
    return code;
}

/* Commit the .idx first, so that a shard that exists has its index. */
static int tfrecord_shard_close(void *state, bool commit)
{
    struct tfrecord_writer *writer = state;
    int code = commit && writer->stream_open ? deflate_out(writer, NULL, 0, Z_FINISH) : 0;
    int idx_code = sink_close(&writer->idx, commit && code == 0);

    code = code ? code : idx_code;
    int sink_code = sink_close(&writer->sink, commit && code == 0);
    if (writer->stream_open)
        deflateEnd(&writer->stream);
    free(writer->packed);
    free(writer->head);
    return code ? code : sink_code;
}

const struct format_ops format_shards = {
    .plugin = {.name = "shards",
               .alias = "tfrecord",
               .summary = "TFRecord, as TensorFlow shards ImageNet; also gzip and zlib",
               .options = tfrecord_options,
               .settings_size = sizeof(struct tfrecord_settings),
               .state_size = sizeof(struct tfrecord_writer)},
    .detect = tfrecord_detect,
    .takes = wanted,
    .walk = tfrecord_walk,
    .parse = tfrecord_parse,
    .shard_open = tfrecord_shard_open,
    .shard_append = tfrecord_shard_append,
    .shard_close = tfrecord_shard_close,
    .naming = {.digits = 5, .has_count = true, .end = ""},
};
