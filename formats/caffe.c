/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/caffe.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "formats/format.h"
#include "formats/protobuf.h"

#include <errno.h>

enum datum_field {
    DATUM_CHANNELS = 1,
    DATUM_HEIGHT = 2,
    DATUM_WIDTH = 3,
    DATUM_DATA = 4,
    DATUM_LABEL = 5,
    DATUM_FLOATS = 6,
    DATUM_ENCODED = 7,
};

enum tensor_field {
    TENSORS_TENSOR = 1,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_FLOATS = 3,
    TENSOR_INTEGERS = 4,
    TENSOR_BYTES = 5,
    TENSOR_STRINGS = 6,
    TENSOR_LONGS = 10,
};

enum tensor_type {
    TENSOR_FLOAT = 1,
    TENSOR_INT32 = 2,
    TENSOR_BYTE = 3,
    TENSOR_STRING = 4,
    TENSOR_INT64 = 10,
};

/* An image is a field of at most 2^32 bytes, so no side exceeds this. */
enum { SIDE_MAX = 1 << 24, CHANNELS_MAX = 4, DIMS_MAX = 4 };

/* protobuf stores an int32 as a sign-extended 64-bit number; old writers cut it to 32 bits. A
 * number that is no int32 is no class. */
static void set_label(struct sample *sample, uint64_t value)
{
    const int32_t number = (int32_t)(uint32_t)value;
    const bool fits = (int64_t)value == number || value == (uint32_t)value;

    sample_set_label(sample, fits ? (double)number : (double)(int64_t)value);
}

/* Set the sides of a raw image and check that they match its length. */
static int set_raw(struct sample *sample, enum sample_encoding encoding, uint64_t height,
                   uint64_t width, uint64_t channels)
{
    if (height == 0 || height > SIDE_MAX || width == 0 || width > SIDE_MAX || channels == 0 ||
        channels > CHANNELS_MAX || height * width * channels != sample->image_bytes)
        return fail(EBADMSG, "a raw image of %zu bytes is not %llu x %llu x %llu",
                    sample->image_bytes, (unsigned long long)height, (unsigned long long)width,
                    (unsigned long long)channels);
    sample->encoding = encoding;
    sample->height = (uint32_t)height;
    sample->width = (uint32_t)width;
    sample->channels = (uint32_t)channels;
    return 0;
}

static const char not_a_datum[] =
    "neither an image nor an intact Datum of Caffe; if another program "
    "wrote it, choose images with lmdb:keys=PATTERN, as image-*, or pack the originals";

static int parse_datum(const void *value, size_t bytes, struct sample *sample)
{
    struct protobuf_cursor cursor = protobuf_start(value, bytes);
    struct protobuf_field field;
    uint64_t sides[DATUM_WIDTH + 1] = {0};
    bool encoded = false, floats = false;
    int got;

    sample->label = 0; /* Caffe's default for a Datum without a label */
    while ((got = protobuf_next(&cursor, &field)) == 1) {
        const uint32_t number = field.number;
        if (number <= DATUM_WIDTH && field.wire == PROTOBUF_VARINT) {
            sides[number] = field.value;
        } else if (number == DATUM_DATA && field.wire == PROTOBUF_BYTES) {
            sample->image = field.bytes;
            sample->image_bytes = field.count;
        } else if (number == DATUM_LABEL && field.wire == PROTOBUF_VARINT) {
            set_label(sample, field.value);
        } else if (number == DATUM_ENCODED && field.wire == PROTOBUF_VARINT) {
            encoded = field.value != 0;
        } else if (number == DATUM_FLOATS) {
            floats = true;
        } else if (number <= DATUM_ENCODED) {
            return fail(EBADMSG, "%s", not_a_datum);
        }
    }
    if (got < 0)
        return fail(EBADMSG, "%s", not_a_datum);
    if (sample->image_bytes == 0 && sample->image && !floats)
        return 0;
    if (sample->image_bytes == 0)
        return floats ? fail(ENOTSUP, "a Datum of floating-point numbers is not an image")
                      : fail(EBADMSG, "a Datum without an image");
    if (encoded)
        return 0;
    return set_raw(sample, SAMPLE_RAW_CHW, sides[DATUM_HEIGHT], sides[DATUM_WIDTH],
                   sides[DATUM_CHANNELS]);
}

struct tensor {
    uint64_t type, dims[DIMS_MAX];
    uint32_t dim_count;
    const uint8_t *bytes; /* byte_data or the first of string_data */
    size_t count;
    bool has_integer, has_float;
    uint64_t integer; /* the first of each kind */
    float real;
};

/* Read a repeated number, packed or not. Keeps the first in *first; if first is NULL, keeps all of
 * them in the tensor's dims. */
static int take_numbers(struct tensor *tensor, const struct protobuf_field *field, uint64_t *first)
{
    struct protobuf_cursor packed = {0};
    uint64_t number = field->value;
    int got = 1;

    if (field->wire != PROTOBUF_VARINT && field->wire != PROTOBUF_BYTES)
        return -EBADMSG;
    if (field->wire == PROTOBUF_BYTES)
        packed = protobuf_nested(field);
    do {
        if (field->wire == PROTOBUF_BYTES)
            got = protobuf_varint(&packed, &number);
        if (got != 1)
            return got;
        if (!first && tensor->dim_count < DIMS_MAX)
            tensor->dims[tensor->dim_count] = number;
        if (!first)
            tensor->dim_count++;
        else if (!tensor->has_integer)
            *first = number;
        tensor->has_integer |= first != NULL;
    } while (field->wire == PROTOBUF_BYTES);
    return 0;
}

static int parse_tensor(const struct protobuf_field *message, struct tensor *tensor)
{
    struct protobuf_cursor cursor = protobuf_nested(message);
    struct protobuf_field field;
    int got, code = 0;

    *tensor = (struct tensor){0};
    while (code == 0 && (got = protobuf_next(&cursor, &field)) != 0) {
        if (got < 0)
            return got;
        if (field.number == TENSOR_DIMS)
            code = take_numbers(tensor, &field, NULL);
        else if (field.number == TENSOR_TYPE && field.wire == PROTOBUF_VARINT)
            tensor->type = field.value;
        else if (field.number == TENSOR_INTEGERS || field.number == TENSOR_LONGS)
            code = take_numbers(tensor, &field, &tensor->integer);
        else if (field.number == TENSOR_FLOATS && field.wire == PROTOBUF_FIXED32) {
            uint8_t fixed[4];
            bytes_put_le32(fixed, (uint32_t)field.value);
            if (!tensor->has_float)
                tensor->real = bytes_le_float(fixed);
            tensor->has_float = true;
        } else if (field.number == TENSOR_FLOATS) { /* packed */
            if (field.wire != PROTOBUF_BYTES || field.count % 4)
                return -EBADMSG;
            if (field.count && !tensor->has_float)
                tensor->real = bytes_le_float(field.bytes);
            tensor->has_float |= field.count > 0;
        } else if ((field.number == TENSOR_BYTES || field.number == TENSOR_STRINGS) &&
                   field.wire == PROTOBUF_BYTES && !tensor->bytes) {
            tensor->bytes = field.bytes;
            tensor->count = field.count;
        }
    }
    return code;
}

static int parse_tensors(const void *value, size_t bytes, struct sample *sample)
{
    struct protobuf_cursor cursor = protobuf_start(value, bytes);
    struct protobuf_field field;
    struct tensor tensor;
    uint32_t count = 0;
    int got;

    while ((got = protobuf_next(&cursor, &field)) == 1) {
        if (field.number != TENSORS_TENSOR || field.wire != PROTOBUF_BYTES)
            continue;
        if (parse_tensor(&field, &tensor))
            return fail(EBADMSG, "a tensor is malformed");
        /* Later ones are a bounding box, or another input of the network. */
        if (++count == 1) {
            sample->image = tensor.bytes;
            sample->image_bytes = tensor.count;
            if (!tensor.bytes)
                return fail(EBADMSG, "TensorProtos whose first tensor has no image");
            if (tensor.type == TENSOR_STRING)
                continue;
            if (tensor.type != TENSOR_BYTE)
                return fail(ENOTSUP, "image tensor of data type %llu, expected STRING or BYTE",
                            (unsigned long long)tensor.type);
            if (tensor.dim_count != 2 && tensor.dim_count != 3)
                return fail(EBADMSG, "a raw image tensor that has neither 2 nor 3 dimensions");
            const int code = set_raw(sample, SAMPLE_RAW_HWC_BGR, tensor.dims[0], tensor.dims[1],
                                     tensor.dim_count == 3 ? tensor.dims[2] : 1);
            if (code)
                return code;
        } else if (count == 2) {
            if ((tensor.type == TENSOR_INT32 || tensor.type == TENSOR_INT64) && tensor.has_integer)
                set_label(sample, tensor.integer);
            else if (tensor.type == TENSOR_FLOAT && tensor.has_float)
                sample_set_label(sample, (double)tensor.real);
            else if (tensor.type == TENSOR_STRING && tensor.bytes)
                sample_set_label_text(sample, (const char *)tensor.bytes, tensor.count);
            else
                return fail(EBADMSG,
                            "the second tensor is not a label: neither a number nor STRING");
        }
    }
    if (got < 0)
        return fail(EBADMSG, "TensorProtos are malformed");
    return count ? 0 : fail(EBADMSG, "TensorProtos without a tensor");
}

int caffe_parse(enum caffe_flavour flavour, const void *value, size_t bytes, struct sample *sample)
{
    static const uint8_t tensors_start = TENSORS_TENSOR << 3 | PROTOBUF_BYTES;
    static const struct {
        const char *start;
        size_t bytes;
    } images[] = {{"\xff\xd8\xff", 3}, {"\x89PNG", 4}, {"RIFF", 4}, {"GIF8", 4}, {"BM", 2}};
    int code = 0;

    if (bytes == 0)
        return fail(EBADMSG, "an empty value");
    if (flavour == CAFFE_AUTO) {
        flavour = *(const uint8_t *)value == tensors_start ? CAFFE_TENSORS : CAFFE_DATUM;
        /* Neither message can start like an image: a Datum's first byte is the tag of field 1 to 7.
         */
        for (size_t i = 0; i < sizeof images / sizeof *images; i++)
            if (bytes >= images[i].bytes && memcmp(value, images[i].start, images[i].bytes) == 0)
                flavour = CAFFE_IMAGE;
    }
    if (flavour == CAFFE_DATUM) {
        code = parse_datum(value, bytes, sample);
    } else if (flavour == CAFFE_IMAGE) {
        sample->image = value;
        sample->image_bytes = bytes;
    } else {
        code = parse_tensors(value, bytes, sample);
    }
    if (code < 0 && format_hint_foreign("", value, bytes))
        code = -EBADMSG;
    if (sample->label < 0)
        sample->label = -1; /* a negative number is not a class */
    return code;
}

/* ---- writing ---- */

/* Write position; NULL while only the length is computed. */
struct caffe_output {
    uint8_t *to;
    size_t bytes;
};

/* Write a number, or the length of a field of bytes, which follow. */
static void put_field(struct caffe_output *output, uint32_t field, enum protobuf_wire wire,
                      uint64_t number)
{
    if (output->to)
        protobuf_put_varint(protobuf_put_tag(output->to + output->bytes, field, wire), number);
    output->bytes += 1 + protobuf_varint_bytes(number); /* fields below 16 have a tag of one byte */
}

/* Return the offset of a pixel's channel; channel 0 is red. */
static size_t channel_offset(enum sample_encoding encoding, size_t channels, size_t pixels,
                             size_t channel, size_t pixel)
{
    if (encoding == SAMPLE_RAW_CHW)
        return (channels - 1 - channel) * pixels + pixel;
    return pixel * channels + (encoding == SAMPLE_RAW_HWC ? channel : channels - 1 - channel);
}

/* Write the image; raw pixels in the layout of raw. */
static void put_image(struct caffe_output *output, const struct sample *sample,
                      enum sample_encoding raw)
{
    uint8_t *to = output->to ? output->to + output->bytes : NULL;
    const uint8_t *from = sample->image;

    output->bytes += sample->image_bytes;
    if (!to)
        return;
    if (sample->encoding == SAMPLE_ENCODED || sample->encoding == raw) {
        memcpy(to, from, sample->image_bytes);
        return;
    }
    const size_t channels = sample->channels, pixels = sample->image_bytes / channels;
    for (size_t channel = 0; channel < channels; channel++)
        for (size_t pixel = 0; pixel < pixels; pixel++)
            to[channel_offset(raw, channels, pixels, channel, pixel)] =
                from[channel_offset(sample->encoding, channels, pixels, channel, pixel)];
}

static void put_image_tensor(struct caffe_output *output, const struct sample *sample)
{
    if (sample->encoding == SAMPLE_ENCODED) {
        put_field(output, TENSOR_DIMS, PROTOBUF_VARINT, 1);
        put_field(output, TENSOR_TYPE, PROTOBUF_VARINT, TENSOR_STRING);
        put_field(output, TENSOR_STRINGS, PROTOBUF_BYTES, sample->image_bytes);
    } else {
        put_field(output, TENSOR_DIMS, PROTOBUF_VARINT, sample->height);
        put_field(output, TENSOR_DIMS, PROTOBUF_VARINT, sample->width);
        put_field(output, TENSOR_DIMS, PROTOBUF_VARINT, sample->channels);
        put_field(output, TENSOR_TYPE, PROTOBUF_VARINT, TENSOR_BYTE);
        put_field(output, TENSOR_BYTES, PROTOBUF_BYTES, sample->image_bytes);
    }
    put_image(output, sample, SAMPLE_RAW_HWC_BGR);
}

static void put_label_tensor(struct caffe_output *output, const struct sample *sample, bool longs)
{
    const uint64_t label = (uint64_t)(int64_t)sample->label;

    put_field(output, TENSOR_DIMS, PROTOBUF_VARINT, 1);
    put_field(output, TENSOR_TYPE, PROTOBUF_VARINT, longs ? TENSOR_INT64 : TENSOR_INT32);
    put_field(output, longs ? TENSOR_LONGS : TENSOR_INTEGERS, PROTOBUF_BYTES,
              protobuf_varint_bytes(label));
    if (output->to)
        protobuf_put_varint(output->to + output->bytes, label);
    output->bytes += protobuf_varint_bytes(label);
}

size_t caffe_put(enum caffe_flavour flavour, const struct sample *sample, uint8_t *to)
{
    struct caffe_output all = {.to = to}, *output = &all;

    if (flavour == CAFFE_TENSORS || flavour == CAFFE_TENSORS_INT64) {
        const bool longs = flavour == CAFFE_TENSORS_INT64;
        struct caffe_output image = {0}, label = {0};
        put_image_tensor(&image, sample);
        put_field(output, TENSORS_TENSOR, PROTOBUF_BYTES, image.bytes);
        put_image_tensor(output, sample);
        put_label_tensor(&label, sample, longs);
        put_field(output, TENSORS_TENSOR, PROTOBUF_BYTES, label.bytes);
        put_label_tensor(output, sample, longs);
    } else if (flavour == CAFFE_IMAGE)
        put_image(output, sample, sample->encoding);
    else {
        /* Write the fields in numeric order, as protobuf's own writers do. */
        const bool raw = sample->encoding != SAMPLE_ENCODED;
        if (raw) {
            put_field(output, DATUM_CHANNELS, PROTOBUF_VARINT, sample->channels);
            put_field(output, DATUM_HEIGHT, PROTOBUF_VARINT, sample->height);
            put_field(output, DATUM_WIDTH, PROTOBUF_VARINT, sample->width);
        }
        put_field(output, DATUM_DATA, PROTOBUF_BYTES, sample->image_bytes);
        put_image(output, sample, SAMPLE_RAW_CHW);
        put_field(output, DATUM_LABEL, PROTOBUF_VARINT, (uint64_t)(int64_t)sample->label);
        put_field(output, DATUM_ENCODED, PROTOBUF_VARINT, !raw);
    }
    return all.bytes;
}
