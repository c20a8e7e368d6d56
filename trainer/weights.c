/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/weights.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8, CHUNK = 1 << 14, HEADER_ALIGNMENT = 8 };
static const uint64_t HEADER_MOST = 100000000; /* of the reference implementation */

static const struct {
    const char *name;
    uint32_t bytes;
} types[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8},     {"I64", 8},
             {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
             {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

uint64_t safetensor_count(const struct safetensor *tensor)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    return count;
}

const char *safetensor_shape(const struct safetensor *tensor, char text[SAFETENSORS_SHAPE_BYTES])
{
    int at = snprintf(text, SAFETENSORS_SHAPE_BYTES, "%s", tensor->rank ? "" : "a number");

    for (uint32_t i = 0; i < tensor->rank; i++)
        at += snprintf(text + at, (size_t)(SAFETENSORS_SHAPE_BYTES - at), "%s%" PRIu64,
                       i ? " x " : "", tensor->shape[i]);
    return text;
}

/* ---- reading the header of a file ---- */

/* A member of the header that is an array of counts; returns how many, or -1. */
static int counts_of(const json_t *array, uint64_t *counts, size_t most)
{
    const size_t count = json_array_size(array);

    if (!json_is_array(array) || count > most)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return -1;
        counts[i] = (uint64_t)json_integer_value(number);
    }
    return (int)count;
}

static int parse_tensor(const char *path, const char *name, const json_t *entry,
                        struct safetensor *tensor)
{
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    uint64_t ends[2], bytes = 0;

    *tensor = (struct safetensor){.name = name};
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].name) == 0) {
            tensor->type = types[i].name;
            bytes = types[i].bytes;
        }
    if (!bytes)
        return fail(EBADMSG, "%s: tensor '%s' has no known dtype", path, name);
    int rank = counts_of(json_object_get(entry, "shape"), tensor->shape, SAFETENSORS_RANK_MAX);
    if (rank < 0)
        return fail(EBADMSG, "%s: tensor '%s' has no shape of up to %d dimensions", path, name,
                    SAFETENSORS_RANK_MAX);
    if (counts_of(json_object_get(entry, "data_offsets"), ends, 2) != 2 || ends[0] > ends[1])
        return fail(EBADMSG, "%s: tensor '%s' has no two data_offsets in order", path, name);
    tensor->rank = (uint32_t)rank;
    tensor->begin = ends[0];
    tensor->bytes = ends[1] - ends[0];
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes))
            return fail(EBADMSG, "%s: the shape of tensor '%s' is too large", path, name);
    if (bytes != tensor->bytes)
        return fail(EBADMSG,
                    "%s: tensor '%s' has %" PRIu64 " bytes of data, its shape and %s %" PRIu64,
                    path, name, tensor->bytes, tensor->type, bytes);
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct safetensor *first = a, *second = b;

    if (first->begin != second->begin)
        return first->begin < second->begin ? -1 : 1;
    return first->bytes < second->bytes ? -1 : first->bytes > second->bytes; /* empty ones first */
}

static int read_exactly(const struct safetensors *file, void *to, uint64_t bytes, uint64_t offset)
{
    const ssize_t got = file_read_at(file->fd, to, bytes, offset, file->path);

    if (got >= 0 && (uint64_t)got < bytes)
        return fail(EBADMSG, "%s: ends at %" PRIu64 ", within what it must contain", file->path,
                    offset + (uint64_t)got);
    return got < 0 ? (int)got : 0;
}

int safetensors_open(struct safetensors *file, const char *path)
{
    uint8_t length[LENGTH_BYTES];
    struct stat status;

    *file = (struct safetensors){.path = strdup(path), .fd = -1};
    if (!file->path)
        return fail(ENOMEM, "out of memory");
    file->fd = file_open(path, O_RDONLY, &status);
    if (file->fd < 0)
        return file->fd;
    int code = read_exactly(file, length, sizeof length, 0);
    if (code)
        return code;
    const uint64_t bytes = bytes_le64(length), file_bytes = (uint64_t)status.st_size;
    if (bytes > HEADER_MOST || bytes + LENGTH_BYTES > file_bytes)
        return fail(EBADMSG, "%s: not a safetensors file: its header would have %" PRIu64 " bytes",
                    path, bytes);
    file->data_at = LENGTH_BYTES + bytes;
    json_error_t error;
    char *text = memory_array(bytes + 1, 1);
    code = text ? read_exactly(file, text, bytes, LENGTH_BYTES) : -ENOMEM;
    if (code == 0) {
        file->header = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object((json_t *)file->header))
            code =
                fail(EBADMSG, "%s: not a safetensors file: the header at 8 is no JSON object (%s)",
                     file->path, file->header ? "but something else" : error.text);
    }
    free(text);
    if (code)
        return code;
    file->tensors = memory_array(json_object_size(file->header), sizeof *file->tensors);
    if (!file->tensors)
        return -ENOMEM;
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        code = parse_tensor(path, name, entry, &file->tensors[file->count]);
        if (code)
            return code;
        file->count++;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, by_offset);
    /* The format's own rule; it also finds files that are cut. */
    const uint64_t data_bytes = file_bytes - file->data_at;
    uint64_t at = 0;
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensor *tensor = &file->tensors[i];
        if (tensor->begin != at)
            return fail(EBADMSG,
                        "%s: tensor '%s' begins at %" PRIu64 " of the data, not at %" PRIu64,
                        file->path, tensor->name, tensor->begin, at);
        at += tensor->bytes;
    }
    if (at != data_bytes)
        return fail(EBADMSG,
                    "%s: tensors of %" PRIu64 " bytes, but %" PRIu64 " bytes after the header: %s",
                    file->path, at, data_bytes,
                    at > data_bytes ? "it is cut" : "what they are is not said");
    return 0;
}

void safetensors_close(struct safetensors *file)
{
    if (file->fd >= 0)
        close(file->fd);
    json_decref(file->header);
    free(file->tensors);
    free(file->path);
    *file = (struct safetensors){.fd = -1};
}

const struct safetensor *safetensors_find(const struct safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

/* ---- numbers ---- */

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16. */
static float float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
                   fraction = half & 1023;

    if (exponent == 31) /* infinity and NaN */
        return float_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) /* subnormal: fraction x 2^-24 */
        return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

int safetensors_read(const struct safetensors *file, const struct safetensor *tensor, float *floats)
{
    const bool is_single = strcmp(tensor->type, "F32") == 0,
               is_half = strcmp(tensor->type, "F16") == 0;
    uint8_t chunk[CHUNK];

    if (!is_single && !is_half && strcmp(tensor->type, "BF16") != 0)
        return fail(ENOTSUP, "%s: tensor '%s' is %s: F32, F16 and BF16 can be read", file->path,
                    tensor->name, tensor->type);
    const uint32_t size = is_single ? 4 : 2;
    for (uint64_t at = 0; at < tensor->bytes; at += CHUNK) {
        const uint64_t bytes = tensor->bytes - at < CHUNK ? tensor->bytes - at : CHUNK;
        int code = read_exactly(file, chunk, bytes, file->data_at + tensor->begin + at);
        if (code)
            return code;
        for (uint64_t i = 0; i < bytes; i += size)
            *floats++ = is_single ? float_of_bits(bytes_le32(chunk + i))
                        : is_half ? float_of_half(bytes_le16(chunk + i))
                                  : float_of_bits((uint32_t)bytes_le16(chunk + i) << 16);
    }
    return 0;
}

/* ---- writing ---- */

/* Return the header, padded with spaces so that the data is aligned. malloc()ed. */
static char *make_header(const struct safetensor *tensors, size_t count, uint64_t *bytes)
{
    json_t *header = json_object(), *metadata = json_object();
    uint64_t at = 0;

    json_put_text(metadata, "format", "pt");
    json_object_set_new(header, "__metadata__", metadata);
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_object(), *shape = json_array();
        const uint64_t end = at + safetensor_count(&tensors[i]) * sizeof(float);
        for (uint32_t j = 0; j < tensors[i].rank; j++)
            json_array_append_new(shape, json_integer((json_int_t)tensors[i].shape[j]));
        json_put_text(entry, "dtype", "F32");
        json_object_set_new(entry, "shape", shape);
        json_object_set_new(entry, "data_offsets",
                            json_pack("[I, I]", (json_int_t)at, (json_int_t)end));
        json_object_set_new(header, tensors[i].name, entry);
        at = end;
    }
    char *text = json_to_text(header, JSON_COMPACT), *padded = NULL;
    json_decref(header);
    if (text) {
        const size_t length = strlen(text);
        *bytes = bytes_align_up(length, HEADER_ALIGNMENT);
        padded = memory_array(*bytes, 1);
        if (padded) {
            memset(padded, ' ', *bytes);
            memcpy(padded, text, length);
        }
    }
    free(text);
    return padded;
}

int safetensors_write(const char *path, const struct safetensor *tensors, size_t count)
{
    const struct file_draft_options only_new = {.no_replace = true};
    struct file_draft draft;
    uint64_t bytes = 0;
    char *header = make_header(tensors, count, &bytes);

    if (!header)
        return -ENOMEM;
    int code = file_draft_open(&draft, path, &only_new);
    if (code == 0) {
        /* base/file.h writes memory as it is: this machine is little-endian (base/bytes.h). */
        uint64_t at = LENGTH_BYTES + bytes;
        uint8_t length[LENGTH_BYTES];
        bytes_put_le64(length, bytes);
        code = file_write_at(draft.fd, length, sizeof length, 0, draft.draft_path);
        if (code == 0)
            code = file_write_at(draft.fd, header, bytes, LENGTH_BYTES, draft.draft_path);
        for (size_t i = 0; code == 0 && i < count; i++) {
            const uint64_t tensor_bytes = safetensor_count(&tensors[i]) * sizeof(float);
            code = file_write_at(draft.fd, tensors[i].floats, tensor_bytes, at, draft.draft_path);
            at += tensor_bytes;
        }
        if (code == 0)
            code = file_draft_commit(&draft);
        file_draft_abandon(&draft);
    }
    free(header);
    return code;
}

/* ---- the tensors of a network ---- */

enum { NAME_BYTES = 96 };

/* Tensors of a network as its file names them. */
struct tensor_list {
    struct safetensor *tensors;
    char (*names)[NAME_BYTES];
    size_t count;
};

static void add_tensor(struct tensor_list *list, const char *layer, const char *part, float *floats,
                       uint32_t rank, const uint64_t *shape)
{
    struct safetensor *tensor = &list->tensors[list->count];

    snprintf(list->names[list->count], NAME_BYTES, "%s.%s", layer, part);
    *tensor = (struct safetensor){.name = list->names[list->count], .rank = rank, .floats = floats};
    memcpy(tensor->shape, shape, rank * sizeof *shape);
    list->count++;
}

static void tensor_list_free(struct tensor_list *list)
{
    free(list->tensors);
    free(list->names);
}

static int make_tensor_list(const struct network *network, const struct graph *graph,
                            float *parameters, float *statistics, struct tensor_list *list)
{
    const size_t most = (size_t)graph->node_count * 4;

    *list = (struct tensor_list){.tensors = memory_array(most, sizeof *list->tensors),
                                 .names = memory_array(most, sizeof *list->names)};
    if (!list->tensors || !list->names)
        return -ENOMEM;
    for (uint32_t i = 1; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        char layer[GRAPH_NAME_BYTES];
        if (node->kind != GRAPH_CONVOLUTION && node->kind != GRAPH_FULLY_CONNECTED &&
            node->kind != GRAPH_BATCH_NORM)
            continue;
        snprintf(layer, sizeof layer, "%s", node->name);
        if (network->torchvision_name)
            network->torchvision_name(network, node->name, layer);
        const struct graph_shape *from = &graph->nodes[node->inputs[0]].shape;
        const struct graph_parameter *all = graph->parameters;
        const uint64_t channels = node->shape.channels;
        const uint64_t convolution[] = {channels, from->channels / node->window.groups,
                                        node->window.height, node->window.width};
        const uint64_t dense[] = {channels, (uint64_t)from->channels * from->height * from->width};
        if (node->kind == GRAPH_CONVOLUTION)
            add_tensor(list, layer, "weight", parameters + all[node->weight].offset, 4,
                       convolution);
        if (node->kind == GRAPH_FULLY_CONNECTED)
            add_tensor(list, layer, "weight", parameters + all[node->weight].offset, 2, dense);
        if (node->bias != UINT32_MAX)
            add_tensor(list, layer, "bias", parameters + all[node->bias].offset, 1, &channels);
        if (node->kind != GRAPH_BATCH_NORM)
            continue;
        add_tensor(list, layer, "weight", parameters + all[node->gamma].offset, 1, &channels);
        add_tensor(list, layer, "bias", parameters + all[node->beta].offset, 1, &channels);
        add_tensor(list, layer, "running_mean", statistics + node->statistics, 1, &channels);
        add_tensor(list, layer, "running_var", statistics + node->statistics + channels, 1,
                   &channels);
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct safetensor *)a)->name, ((const struct safetensor *)b)->name);
}

int weights_read(const char *path, const struct network *network, const struct graph *graph,
                 float *parameters, float *statistics)
{
    struct safetensors file;
    struct tensor_list list = {0};
    static const char counter[] = ".num_batches_tracked";
    int code = safetensors_open(&file, path);

    if (code == 0)
        code = make_tensor_list(network, graph, parameters, statistics, &list);
    for (size_t i = 0; i < list.count && code == 0; i++) {
        const struct safetensor *wanted = &list.tensors[i];
        const struct safetensor *found = safetensors_find(&file, wanted->name);
        char has[SAFETENSORS_SHAPE_BYTES], needs[SAFETENSORS_SHAPE_BYTES];
        if (!found)
            code =
                fail(EINVAL, "%s: no tensor '%s', which %s has%s", path, wanted->name,
                     network->name, network->torchvision_name ? " (names are torchvision's)" : "");
        else if (found->rank != wanted->rank ||
                 memcmp(found->shape, wanted->shape, wanted->rank * sizeof *wanted->shape) != 0)
            code =
                fail(EINVAL,
                     "%s: tensor '%s' is %s, but %s needs %s: see --network, --size and --classes",
                     path, wanted->name, safetensor_shape(found, has), network->name,
                     safetensor_shape(wanted, needs));
        else
            code = safetensors_read(&file, found, wanted->floats);
    }
    /* A network of other layers, or a part of a larger one, must not pass for this one. */
    if (code == 0)
        qsort(list.tensors, list.count, sizeof *list.tensors, by_name);
    for (size_t i = 0; i < file.count && code == 0; i++) {
        const struct safetensor *tensor = &file.tensors[i];
        const size_t length = strlen(tensor->name), end = sizeof counter - 1;
        if (length >= end && strcmp(tensor->name + length - end, counter) == 0)
            continue;
        if (!bsearch(tensor, list.tensors, list.count, sizeof *list.tensors, by_name))
            code = fail(EINVAL, "%s: tensor '%s' is not one of %s", file.path, tensor->name,
                        network->name);
    }
    safetensors_close(&file);
    tensor_list_free(&list);
    return code;
}

int weights_write(const char *path, const struct network *network, const struct graph *graph,
                  float *parameters, float *statistics)
{
    struct tensor_list list;
    int code = make_tensor_list(network, graph, parameters, statistics, &list);

    if (code == 0)
        code = safetensors_write(path, list.tensors, list.count);
    tensor_list_free(&list);
    return code;
}

/* ---- checkpoints ---- */

enum {
    LAYOUT_VERSION = 2,
    FIRST_VERSION = 1, /* without settings */
    NAME_AT = 24,
    NUMBERS_AT = NAME_AT + CHECKPOINT_NAME_BYTES,
    NUMBERS = 8,
    RATE_AT = NUMBERS_AT + NUMBERS * 8,
    SETTINGS_AT = RATE_AT + 8,
    HEAD_BYTES = SETTINGS_AT + CHECKPOINT_SETTINGS_BYTES,
    CRC_BYTES = 4
};

static const char magic[8] = {'I', 'O', 'B', 'E', 'N', 'C', 'H', 'K'};

/* Header fields in file order. */
static void list_numbers(struct checkpoint *checkpoint, uint64_t *numbers[NUMBERS])
{
    uint64_t *const list[NUMBERS] = {
        &checkpoint->parameter_floats,    &checkpoint->statistic_floats, &checkpoint->seed,
        &checkpoint->batch_size,          &checkpoint->position.epoch,   &checkpoint->step,
        &checkpoint->position.elapsed_ns, &checkpoint->position.samples};

    memcpy(numbers, list, sizeof list);
}

uint64_t checkpoint_floats(const struct checkpoint *checkpoint)
{
    return 2 * checkpoint->parameter_floats + checkpoint->statistic_floats;
}

int checkpoint_check_replaced(const char *path)
{
    return replaced_check(path, magic, sizeof magic);
}

int checkpoint_write(const char *path, const struct checkpoint *checkpoint, const float *floats)
{
    const uint64_t bytes = checkpoint_floats(checkpoint) * sizeof *floats;
    struct checkpoint copy = *checkpoint;
    uint64_t *numbers[NUMBERS], rate;
    uint8_t head[HEAD_BYTES] = {0}, end[CRC_BYTES];
    /* A fixed name: the next checkpoint replaces what kill -9 leaves, so drafts do not pile up. The
     * caller has locked the folder. */
    const struct file_draft_options again = {.suffix = "next"};
    struct file_draft draft;

    memcpy(head, magic, sizeof magic);
    bytes_put_le32(head + 8, LAYOUT_VERSION);
    bytes_put_le32(head + 12, checkpoint->side);
    bytes_put_le32(head + 16, checkpoint->classes);
    snprintf((char *)head + NAME_AT, CHECKPOINT_NAME_BYTES, "%s", checkpoint->network);
    list_numbers(&copy, numbers);
    for (int i = 0; i < NUMBERS; i++)
        bytes_put_le64(head + NUMBERS_AT + 8 * i, *numbers[i]);
    memcpy(&rate, &checkpoint->rate_before, sizeof rate);
    bytes_put_le64(head + RATE_AT, rate);
    snprintf((char *)head + SETTINGS_AT, CHECKPOINT_SETTINGS_BYTES, "%s",
             checkpoint->position.settings);
    bytes_put_le32(end, crc32c(crc32c(0, head, HEAD_BYTES), floats, bytes));
    const bool is_free = file_draft_remove_stale(path, again.suffix) == 0;
    int code = is_free ? file_draft_open(&draft, path, &again) : -EEXIST;
    if (code == -EEXIST)
        code = file_draft_open(&draft, path, NULL);
    if (code)
        return code;
    code = file_write_at(draft.fd, head, HEAD_BYTES, 0, draft.draft_path);
    if (code == 0)
        code = file_write_at(draft.fd, floats, bytes, HEAD_BYTES, draft.draft_path);
    if (code == 0)
        code = file_write_at(draft.fd, end, sizeof end, HEAD_BYTES + bytes, draft.draft_path);
    if (code == 0)
        code = file_draft_commit(&draft);
    file_draft_abandon(&draft);
    return code;
}

/* Read exactly that many bytes. */
static int read_all(int fd, void *to, uint64_t bytes, uint64_t offset, const char *path)
{
    const ssize_t got = file_read_at(fd, to, bytes, offset, path);

    if (got >= 0 && (uint64_t)got < bytes)
        return fail(EBADMSG, "%s: the checkpoint ends early", path);
    return got < 0 ? (int)got : 0;
}

/* Read the head; version 1's ends before the settings. Returns its size or a negative errno. */
static int read_head(int fd, uint8_t head[HEAD_BYTES], const struct checkpoint *wanted,
                     struct checkpoint *found, const char *path)
{
    uint64_t *numbers[NUMBERS], rate;

    memset(head, 0, HEAD_BYTES);
    int bytes = SETTINGS_AT, code = read_all(fd, head, SETTINGS_AT, 0, path);
    const uint32_t version = bytes_le32(head + 8);
    if (code == 0 && version > FIRST_VERSION) {
        code = read_all(fd, head + SETTINGS_AT, CHECKPOINT_SETTINGS_BYTES, SETTINGS_AT, path);
        bytes = HEAD_BYTES;
    }
    if (code)
        return code;
    *found = (struct checkpoint){.side = bytes_le32(head + 12), .classes = bytes_le32(head + 16)};
    memcpy(found->network, head + NAME_AT, CHECKPOINT_NAME_BYTES - 1);
    list_numbers(found, numbers);
    for (int i = 0; i < NUMBERS; i++)
        *numbers[i] = bytes_le64(head + NUMBERS_AT + 8 * i);
    rate = bytes_le64(head + RATE_AT);
    memcpy(&found->rate_before, &rate, sizeof rate);
    memcpy(found->position.settings, head + SETTINGS_AT, CHECKPOINT_SETTINGS_BYTES - 1);
    if (memcmp(head, magic, sizeof magic) != 0)
        return fail(EINVAL, "%s: not a checkpoint", path);
    if (version < FIRST_VERSION || version > LAYOUT_VERSION)
        return fail(EINVAL, "%s: checkpoint version %u, expected %d to %d", path, version,
                    FIRST_VERSION, LAYOUT_VERSION);
    if (strcmp(found->network, wanted->network) != 0 || found->side != wanted->side ||
        found->classes != wanted->classes || found->parameter_floats != wanted->parameter_floats ||
        found->statistic_floats != wanted->statistic_floats)
        return fail(EINVAL,
                    "%s: a checkpoint of %s for images of %u pixels and %u classes, not of %s for "
                    "%u pixels and %u classes",
                    path, found->network, found->side, found->classes, wanted->network,
                    wanted->side, wanted->classes);
    return bytes;
}

int checkpoint_read(const char *path, const struct checkpoint *wanted,
                    struct checkpoint *checkpoint, float *floats)
{
    const uint64_t bytes = checkpoint_floats(wanted) * sizeof *floats;
    uint8_t head[HEAD_BYTES], end[CRC_BYTES];
    int fd = file_open(path, O_RDONLY, NULL);

    if (fd < 0)
        return fd;
    const int head_bytes = read_head(fd, head, wanted, checkpoint, path);
    int code = head_bytes < 0 ? head_bytes : 0;
    if (code == 0)
        code = read_all(fd, floats, bytes, (uint64_t)head_bytes, path);
    if (code == 0)
        code = read_all(fd, end, sizeof end, (uint64_t)head_bytes + bytes, path);
    if (code == 0 && bytes_le32(end) != crc32c(crc32c(0, head, (size_t)head_bytes), floats, bytes))
        code = fail(EBADMSG, "%s: the checkpoint is damaged: its CRC is wrong", path);
    close(fd);
    return code;
}
