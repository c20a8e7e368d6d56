/* SPDX-License-Identifier: Apache-2.0
 * VGG: Simonyan and Zisserman 2015 (arXiv 1409.1556), table 1, columns D (16) and E (19). */
#include "trainer/networks/networks.h"

#include <stdio.h>

static void build_vgg(struct graph *graph, const uint32_t *depths)
{
    static const uint32_t widths[] = {64, 128, 256, 512, 512};
    uint32_t x = 0;

    for (uint32_t stage = 0; stage < 5; stage++) {
        for (uint32_t i = 0; i < depths[stage]; i++) {
            char name[GRAPH_NAME_BYTES];
            snprintf(name, sizeof name, "conv%u_%u", stage + 1, i + 1);
            x = networks_conv_relu(graph, name, x, widths[stage], graph_square(3, 1, 1));
        }
        x = graph_max_pool(graph, x, graph_square(2, 2, 0));
    }
    x = graph_dropout(graph, graph_relu(graph, graph_fully_connected(graph, "fc6", x, 4096)), 0.5);
    x = graph_dropout(graph, graph_relu(graph, graph_fully_connected(graph, "fc7", x, 4096)), 0.5);
    graph_fully_connected(graph, "fc8", x, graph->classes);
}

/* torchvision numbers its layers, convolutions, ReLUs, pools and dropouts alike
 * (torchvision/models/vgg.py). */
static void torchvision_name(const struct network *network, const char *layer,
                             char name[GRAPH_NAME_BYTES])
{
    unsigned stage, number, at = 0;

    if (sscanf(layer, "conv%u_%u", &stage, &number) == 2) {
        for (unsigned i = 0; i + 1 < stage; i++)
            at += 2 * network->depths[i] + 1;
        snprintf(name, GRAPH_NAME_BYTES, "features.%u", at + 2 * (number - 1));
    } else if (sscanf(layer, "fc%u", &number) == 1) {
        snprintf(name, GRAPH_NAME_BYTES, "classifier.%u", 3 * (number - 6));
    }
}

/* Parameters are those of torchvision's models. */
#define VGG(LAYERS, CONFIGURATION, PARAMETERS, GMACS, ...)                     \
    const struct network network_vgg##LAYERS = {                               \
        .name = "vgg" #LAYERS,                                                 \
        .summary = "VGG-" #LAYERS,                                             \
        .source = "Simonyan and Zisserman 2015, configuration " CONFIGURATION, \
        .side = 224,                                                           \
        .classes = 1000,                                                       \
        .build = build_vgg,                                                    \
        .torchvision_name = torchvision_name,                                  \
        .depths = {__VA_ARGS__},                                               \
        .plain_batch = 256,                                                    \
        .published_parameters = PARAMETERS,                                    \
        .published_gmacs = GMACS}

VGG(16, "D", 138357544, 15.470, 2, 2, 3, 3, 3);
VGG(19, "E", 143667240, 19.632, 2, 2, 4, 4, 4);
