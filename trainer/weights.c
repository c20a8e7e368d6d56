/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/weights.h"

#include "base/fail.h"
#include "base/memory.h"
#include "trainer/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        const uint64_t convolution[] = {channels,
                                        from->channels / (node->groups ? node->groups : 1),
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

/* ---- reading ---- */

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
            code = fail(EINVAL, "%s: tensor '%s' is none of %s", file.path, tensor->name,
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
