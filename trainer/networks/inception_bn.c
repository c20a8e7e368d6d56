/* SPDX-License-Identifier: Apache-2.0
 * Inception with batch normalisation: Ioffe and Szegedy 2015 (arXiv 1502.03167), figure 5, with the
 * widths of MXNet's inception-bn. */
#include "trainer/networks/networks.h"

#include <stdio.h>

struct inception_widths {
    const char *name;
    uint32_t one, reduce3, three, reduce_double,
        twice; /* a 0 marks a block that halves the plane */
    uint32_t pool;
    bool max_pool;
};

static uint32_t part(struct graph *graph, const char *block, const char *name, uint32_t input,
                     uint32_t channels, uint32_t side, uint32_t stride)
{
    char text[GRAPH_NAME_BYTES];

    snprintf(text, sizeof text, "%.20s.%.20s", block, name);
    return networks_conv_bn_relu(graph, text, input, channels,
                                 graph_square(side, stride, side / 2));
}

static uint32_t block(struct graph *graph, uint32_t x, const struct inception_widths *widths)
{
    const char *name = widths->name;
    const uint32_t stride = widths->one ? 1 : 2;
    uint32_t parts[4], count = 0;

    if (widths->one)
        parts[count++] = part(graph, name, "1x1", x, widths->one, 1, 1);
    uint32_t y = part(graph, name, "3x3_reduce", x, widths->reduce3, 1, 1);
    parts[count++] = part(graph, name, "3x3", y, widths->three, 3, stride);
    y = part(graph, name, "double_3x3_reduce", x, widths->reduce_double, 1, 1);
    y = part(graph, name, "double_3x3_0", y, widths->twice, 3, 1);
    parts[count++] = part(graph, name, "double_3x3_1", y, widths->twice, 3, stride);
    struct graph_window window = graph_square(3, stride, 1);
    y = widths->max_pool ? graph_max_pool(graph, x, window) : graph_average_pool(graph, x, window);
    if (widths->pool)
        y = part(graph, name, "proj", y, widths->pool, 1, 1);
    parts[count++] = y;
    return graph_concat(graph, parts, count);
}

static void build_inception_bn(struct graph *graph, const uint32_t *depths)
{
    static const struct inception_widths blocks[] = {
        {"3a", 64, 64, 64, 64, 96, 32, false},       {"3b", 64, 64, 96, 64, 96, 64, false},
        {"3c", 0, 128, 160, 64, 96, 0, true},        {"4a", 224, 64, 96, 96, 128, 128, false},
        {"4b", 192, 96, 128, 96, 128, 128, false},   {"4c", 160, 128, 160, 128, 160, 128, false},
        {"4d", 96, 128, 192, 160, 192, 128, false},  {"4e", 0, 128, 192, 192, 256, 0, true},
        {"5a", 352, 192, 320, 160, 224, 128, false}, {"5b", 352, 192, 320, 192, 224, 128, true},
    };

    (void)depths;
    uint32_t x = networks_conv_bn_relu(graph, "conv1", 0, 64, graph_square(7, 2, 3));
    x = graph_max_pool(graph, x, graph_square(3, 2, 1));
    x = networks_conv_bn_relu(graph, "conv2_reduce", x, 64, graph_square(1, 1, 0));
    x = networks_conv_bn_relu(graph, "conv2", x, 192, graph_square(3, 1, 1));
    x = graph_max_pool(graph, x, graph_square(3, 2, 1));
    for (int i = 0; i < 10; i++)
        x = block(graph, x, &blocks[i]);
    graph_fully_connected(graph, "fc", graph_global_pool(graph, x), graph->classes);
}

const struct network network_inception_bn = {
    .name = "inception-bn",
    .summary = "Inception with batch normalisation",
    .source = "Ioffe and Szegedy 2015; widths of MXNet's inception-bn",
    .side = 224,
    .classes = 1000,
    .build = build_inception_bn,
    /* MXNet counts a bias for each of the 10,016 convolution channels, which BN makes redundant. */
    .published_parameters = 11295240 - 10016,
    .published_gmacs = 2.03,
};
