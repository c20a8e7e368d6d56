/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/example.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/image_header.h"
#include "formats/protobuf.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum feature_kind { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

/* Field numbers at each nesting level, and of a Feature's value lists. */
enum { FEATURES = 1, FEATURE_LISTS = 2, FEATURE = 1, MAP_KEY = 1, MAP_VALUE = 2, LIST_VALUE = 1 };

static const char image_key[] = "image/encoded", label_key[] = "image/class/label";

/* ---- reading ---- */

/* The features to look for; the preferred key of a pair comes first. */
enum { IMAGE, IMAGE_OTHER, LABEL, LABEL_OTHER, NAME, NAME_OTHER, MATCHES };

struct feature_match {
    const char *key; /* NULL: unused */
    size_t key_bytes;
    struct protobuf_field feature; /* bytes NULL: not found */
};

static int damaged(void)
{
    return fail(EBADMSG,
                "the record's Example (a protocol-buffer message) is damaged, or it is none; "
                "--decode=none reads records whole");
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

static int label_base(const struct example_keys *keys, const char *key)
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

int example_parse(const struct example_keys *keys, const void *message, size_t bytes,
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
                    names.are_lists ? "SequenceExample, of which lists are not read," : "Example",
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

/* ---- writing ---- */

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

int example_head(const struct example_keys *keys, const struct sample *sample,
                 uint8_t head[EXAMPLE_HEAD_BYTES])
{
    const char *image = keys->image ? keys->image : image_key;
    const char *label = keys->label ? keys->label : label_key;
    struct image_header header;
    image_header_read(sample->image, sample->image_bytes,
                      &header); /* reads as many headers as the image has */
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
