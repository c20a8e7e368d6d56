/* SPDX-License-Identifier: Apache-2.0
 *
 * A column of a fixed size lies after the fixed bytes and the variable columns before it. So two
 * numbers locate each: fixed bytes and variable columns before it. Layout, from bit 0:
 *   8 variable columns | 8, 16 variable columns and fixed bytes before the image |
 *   8, 16 the same before the label | 4 kind of image | 4 kind of label */
#include "formats/mds_columns.h"

#include "base/bytes.h"
#include "base/fail.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

enum { COLUMNS_MAX = 255, FIXED_MAX = 65535, PIL_HEAD = 12 };

enum mds_image { IMAGE_ENCODED, IMAGE_PIL };
enum mds_label {
    LABEL_NONE,
    LABEL_U8,
    LABEL_U16,
    LABEL_U32,
    LABEL_I8,
    LABEL_I16,
    LABEL_I32,
    LABEL_I64,
    LABEL_TEXT
};

static const struct {
    const char *encoding;
    enum mds_label kind;
    unsigned bytes;
} label_kinds[] = {
    {"int", LABEL_I64, 8},    {"int64", LABEL_I64, 8},  {"uint64", LABEL_I64, 8},
    {"int32", LABEL_I32, 4},  {"uint32", LABEL_U32, 4}, {"int16", LABEL_I16, 2},
    {"uint16", LABEL_U16, 2}, {"int8", LABEL_I8, 1},    {"uint8", LABEL_U8, 1},
    {"str", LABEL_TEXT, 0},
};

static const char *const usual_labels[] = {"label", "class", "target", "y"};

/* Where a column begins. */
struct column_place {
    uint64_t variable, fixed; /* variable columns and fixed bytes before it */
};

struct mds_columns {
    uint64_t variable;
    struct column_place image, label;
    enum mds_image image_kind;
    enum mds_label label_kind;
    bool has_image;
};

static bool encoded_as(const char *encoding, const char *name)
{
    size_t length = strlen(name);

    return strncmp(encoding, name, length) == 0 &&
           (encoding[length] == '\0' || encoding[length] == ':');
}

static enum mds_label label_kind_of(const char *encoding, uint64_t bytes)
{
    for (size_t i = 0; i < sizeof label_kinds / sizeof label_kinds[0]; i++)
        if (strcmp(label_kinds[i].encoding, encoding) == 0 && label_kinds[i].bytes == bytes)
            return label_kinds[i].kind;
    return LABEL_NONE;
}

static bool is_usual_label(const char *name)
{
    for (size_t i = 0; i < sizeof usual_labels / sizeof usual_labels[0]; i++)
        if (strcmp(usual_labels[i], name) == 0)
            return true;
    return false;
}

/* Take a column for image or label if it is the one chosen. here: where it begins; bytes: 0 if its
 * size varies. */
static int take_column(struct mds_columns *columns, const char *path,
                       const struct mds_choice *choice, const char *name, const char *encoding,
                       uint64_t bytes, struct column_place here)
{
    const bool named = choice->image && strcmp(name, choice->image) == 0;
    const bool pil = encoded_as(encoding, "pil");

    if (named && bytes)
        return fail(ENOTSUP, "%s: column %s (%s) has a fixed size: not an image", path, name,
                    encoding);
    if (named || (!choice->image && !columns->has_image && !bytes &&
                  (pil || encoded_as(encoding, "jpeg") || encoded_as(encoding, "png")))) {
        columns->has_image = true;
        columns->image = here;
        columns->image_kind = pil ? IMAGE_PIL : IMAGE_ENCODED;
    }
    if (choice->label ? strcmp(name, choice->label) != 0 : !is_usual_label(name))
        return 0;
    enum mds_label kind = label_kind_of(encoding, bytes);
    if (choice->label && kind == LABEL_NONE)
        return fail(ENOTSUP, "%s: column %s (%s) is no label", path, name, encoding);
    /* The first, but a number before a text. */
    if (columns->label_kind == LABEL_NONE ||
        (columns->label_kind == LABEL_TEXT && kind != LABEL_NONE && kind != LABEL_TEXT)) {
        columns->label = here;
        columns->label_kind = kind;
    }
    return 0;
}

static int take_columns(struct mds_columns *columns, const char *path, const json_t *document,
                        const struct mds_choice *choice)
{
    const json_t *names = json_object_get(document, "column_names");
    const json_t *encodings = json_object_get(document, "column_encodings");
    const json_t *sizes = json_object_get(document, "column_sizes");
    const size_t count = json_array_size(names);
    struct column_place here = {0};

    if (count == 0 || json_array_size(encodings) != count || json_array_size(sizes) != count)
        return fail(EBADMSG, "%s: its columns are not described", path);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const char *encoding = json_string_value(json_array_get(encodings, i));
        const json_int_t bytes = json_integer_value(json_array_get(sizes, i)); /* null: 0 */
        if (!name || !encoding || bytes < 0)
            return fail(EBADMSG, "%s: column %zu has no name, encoding or size", path, i);
        int code = take_column(columns, path, choice, name, encoding, (uint64_t)bytes, here);
        if (code)
            return code;
        here.fixed += (uint64_t)bytes;
        here.variable += bytes == 0;
        if (here.variable > COLUMNS_MAX || (uint64_t)bytes > FIXED_MAX || here.fixed > FIXED_MAX)
            return fail(ENOTSUP, "%s: more than %d columns, or %d bytes of fixed columns", path,
                        COLUMNS_MAX, FIXED_MAX);
    }
    columns->variable = here.variable;
    return 0;
}

int mds_layout(const char *path, const char *json, size_t bytes, const struct mds_choice *choice,
               uint64_t *layout)
{
    struct mds_columns columns = {0};
    json_error_t error;
    json_t *document = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &error);
    int code = document ? take_columns(&columns, path, document, choice)
                        : fail(EBADMSG, "%s: its columns: %s", path, error.text);

    json_decref(document);
    if (code)
        return code;
    if (!columns.has_image)
        return fail(ENOTSUP, "%s: no column %s: name it with mds:image=COLUMN", path,
                    choice->image ? choice->image : "of encoding jpeg, png or pil");
    if (choice->label && columns.label_kind == LABEL_NONE)
        return fail(ENOTSUP, "%s: no column %s", path, choice->label);
    *layout = columns.variable | columns.image.variable << 8 | columns.image.fixed << 16 |
              columns.label.variable << 32 | columns.label.fixed << 40 |
              (uint64_t)columns.image_kind << 56 | (uint64_t)columns.label_kind << 60;
    return 0;
}

/* ---- a sample ---- */

/* Return where a column begins; past the end of the record if its sizes are wrong. */
static uint64_t offset_of(struct column_place place, uint64_t variable, const uint8_t *record)
{
    uint64_t offset = 4 * variable + place.fixed;

    for (uint64_t i = 0; i < place.variable; i++)
        offset += bytes_le32(record + 4 * i);
    return offset;
}

static void take_label(enum mds_label kind, const uint8_t *at, struct sample *sample)
{
    const int64_t value = kind == LABEL_U8    ? *at
                          : kind == LABEL_I8  ? (int8_t)*at
                          : kind == LABEL_U16 ? bytes_le16(at)
                          : kind == LABEL_I16 ? (int16_t)bytes_le16(at)
                          : kind == LABEL_U32 ? bytes_le32(at)
                          : kind == LABEL_I32 ? (int32_t)bytes_le32(at)
                                              : (int64_t)bytes_le64(at);

    sample_set_label(sample, (double)value);
}

/* A PIL image: u32 width, height, bytes of its mode; the mode; rows of pixels. */
static int take_pil(struct sample *sample)
{
    const uint8_t *head = sample->image;
    const size_t bytes = sample->image_bytes;
    if (bytes == 0)
        return 0;
    const uint64_t mode_bytes = bytes >= PIL_HEAD ? bytes_le32(head + 8) : UINT64_MAX;

    if (bytes < PIL_HEAD || mode_bytes > bytes - PIL_HEAD)
        return fail(EBADMSG, "a PIL image is shorter than its head");
    const uint8_t *mode = head + PIL_HEAD;
    const uint32_t channels = mode_bytes == 3 && memcmp(mode, "RGB", 3) == 0 ? 3
                              : mode_bytes == 1 && *mode == 'L'              ? 1
                                                                             : 0;
    if (!channels)
        return fail(EBADMSG, "a PIL image is neither RGB nor L");
    sample->encoding = SAMPLE_RAW_HWC;
    sample->width = bytes_le32(head);
    sample->height = bytes_le32(head + 4);
    sample->channels = channels;
    sample->image = mode + mode_bytes;
    sample->image_bytes = bytes - PIL_HEAD - (size_t)mode_bytes;
    if ((uint64_t)sample->width * sample->height > SIZE_MAX / 4 ||
        (uint64_t)sample->width * sample->height * channels != sample->image_bytes)
        return fail(EBADMSG, "a PIL image of %u x %u has %zu bytes", sample->width, sample->height,
                    sample->image_bytes);
    return 0;
}

int mds_columns_parse(uint64_t layout, const void *record, size_t bytes, struct sample *sample)
{
    static const uint8_t label_bytes[16] = {0, 1, 2, 4, 1, 2, 4, 8};
    const uint64_t variable = layout & 0xff;
    const struct column_place image = {.variable = layout >> 8 & 0xff,
                                       .fixed = layout >> 16 & 0xffff};
    const struct column_place label = {.variable = layout >> 32 & 0xff,
                                       .fixed = layout >> 40 & 0xffff};
    const enum mds_label kind = (enum mds_label)(layout >> 60);
    const uint8_t *from = record;

    if (kind > LABEL_TEXT || bytes < 4 * variable || image.variable >= variable ||
        label.variable + (kind == LABEL_TEXT) > variable)
        return fail(EBADMSG, "a sample of %zu bytes is shorter than the sizes of its columns",
                    bytes);
    const uint64_t image_at = offset_of(image, variable, from);
    const uint64_t image_bytes = bytes_le32(from + 4 * image.variable);
    const uint64_t label_at = offset_of(label, variable, from);
    const uint64_t label_count =
        kind == LABEL_TEXT ? bytes_le32(from + 4 * label.variable) : label_bytes[kind];
    if (image_at > bytes || image_bytes > bytes - image_at || label_count > bytes ||
        label_at > bytes - label_count)
        return fail(EBADMSG, "the columns of a sample exceed its %zu bytes", bytes);
    sample->image = from + image_at;
    sample->image_bytes = (size_t)image_bytes;
    if (kind == LABEL_TEXT)
        sample_set_label_text(sample, (const char *)from + label_at, (size_t)label_count);
    else if (kind != LABEL_NONE)
        take_label(kind, from + label_at, sample);
    return (layout >> 56 & 0xf) == IMAGE_PIL ? take_pil(sample) : 0;
}
