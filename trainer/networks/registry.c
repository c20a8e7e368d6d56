/* SPDX-License-Identifier: Apache-2.0
 * The networks, in the order users see them, and what several of them share. */
#include "base/fail.h"
#include "trainer/networks/networks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct network *const network_registry[] = {
    &network_resnet50,
    &network_resnet101,
    &network_resnet152,
    &network_resnet110,
    &network_tiny,
    &network_lenet,
    &network_alexnet,
    &network_vgg16,
    &network_vgg19,
    &network_googlenet,
    &network_inception_bn,
    &network_inception_v3,
    NULL,
};

const struct network *network_find(const char *name)
{
    char names[256] = "";
    size_t used = 0;

    for (const struct network *const *network = network_registry; *network; network++) {
        if (strcmp((*network)->name, name) == 0)
            return *network;
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     (*network)->name);
    }
    fail(EINVAL, "unknown network '%s'; known: %s", name, names);
    return NULL;
}

uint32_t networks_conv_bn_relu(struct graph *graph, const char *name, uint32_t input,
                               uint32_t channels, struct graph_window window)
{
    char text[GRAPH_NAME_BYTES];

    snprintf(text, sizeof text, "%s.conv", name);
    uint32_t x = graph_convolution(graph, text, input, channels, window, 1, false);
    snprintf(text, sizeof text, "%s.bn", name);
    return graph_relu(graph, graph_batch_norm(graph, text, x, 1));
}

uint32_t networks_conv_relu(struct graph *graph, const char *name, uint32_t input,
                            uint32_t channels, struct graph_window window)
{
    return graph_relu(graph, graph_convolution(graph, name, input, channels, window, 1, true));
}

struct graph_window networks_same(uint32_t height, uint32_t width)
{
    return (struct graph_window){.height = height,
                                 .width = width,
                                 .stride = 1,
                                 .pad_top = height / 2,
                                 .pad_bottom = height / 2,
                                 .pad_left = width / 2,
                                 .pad_right = width / 2};
}

struct graph *networks_finish(struct graph *graph)
{
    if (graph && graph_seal(graph)) {
        graph_destroy(graph);
        return NULL;
    }
    return graph;
}
