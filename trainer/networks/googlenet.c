/* SPDX-License-Identifier: Apache-2.0
 * GoogLeNet without its auxiliary classifiers: Szegedy et al. 2015 (arXiv 1409.4842), table 1, as
 * Caffe's bvlc_googlenet computes it (pools round up). */
#include "trainer/networks/networks.h"

#include <stdio.h>

struct googlenet_widths {
    const char *name;
    uint32_t one, reduce3, three, reduce5, five, pool;
};

/* 3x3 with stride 2, rounded up: padding for the incomplete last window. */
static uint32_t pool_up(struct graph *graph, uint32_t input)
{
    const struct graph_shape *shape = &graph->nodes[input].shape;
    struct graph_window window = graph_square(3, 2, 0);

    window.pad_bottom = shape->height % 2 == 0;
    window.pad_right = shape->width % 2 == 0;
    return graph_max_pool(graph, input, window);
}

static uint32_t part(struct graph *graph, const char *block, const char *name, uint32_t input,
                     uint32_t channels, uint32_t side)
{
    char text[GRAPH_NAME_BYTES];

    snprintf(text, sizeof text, "%.20s.%.20s", block, name);
    return networks_conv_relu(graph, text, input, channels, networks_same(side, side));
}

static uint32_t inception(struct graph *graph, uint32_t x, const struct googlenet_widths *widths)
{
    const char *name = widths->name;
    uint32_t parts[] = {
        part(graph, name, "1x1", x, widths->one, 1),
        part(graph, name, "3x3", part(graph, name, "3x3_reduce", x, widths->reduce3, 1),
             widths->three, 3),
        part(graph, name, "5x5", part(graph, name, "5x5_reduce", x, widths->reduce5, 1),
             widths->five, 5),
        part(graph, name, "pool_proj", graph_max_pool(graph, x, networks_same(3, 3)), widths->pool,
             1),
    };

    return graph_concat(graph, parts, 4);
}

static void build_googlenet(struct graph *graph, const uint32_t *depths)
{
    static const struct googlenet_widths blocks[] = {
        {"3a", 64, 96, 128, 16, 32, 32},     {"3b", 128, 128, 192, 32, 96, 64},
        {"4a", 192, 96, 208, 16, 48, 64},    {"4b", 160, 112, 224, 24, 64, 64},
        {"4c", 128, 128, 256, 24, 64, 64},   {"4d", 112, 144, 288, 32, 64, 64},
        {"4e", 256, 160, 320, 32, 128, 128}, {"5a", 256, 160, 320, 32, 128, 128},
        {"5b", 384, 192, 384, 48, 128, 128},
    };

    (void)depths;
    uint32_t x = networks_conv_relu(graph, "conv1", 0, 64, graph_square(7, 2, 3));
    x = graph_lrn(graph, pool_up(graph, x), 5, 1e-4, 0.75, 1);
    x = networks_conv_relu(graph, "conv2_reduce", x, 64, graph_square(1, 1, 0));
    x = networks_conv_relu(graph, "conv2", x, 192, graph_square(3, 1, 1));
    x = pool_up(graph, graph_lrn(graph, x, 5, 1e-4, 0.75, 1));
    for (int i = 0; i < 9; i++) {
        x = inception(graph, x, &blocks[i]);
        if (i == 1 || i == 6)
            x = pool_up(graph, x);
    }
    x = graph_dropout(graph, graph_global_pool(graph, x), 0.4);
    graph_fully_connected(graph, "fc", x, graph->classes);
}

const struct network network_googlenet = {
    .name = "googlenet",
    .summary = "GoogLeNet",
    .source = "Szegedy et al. 2015; Caffe bvlc_googlenet without auxiliary classifiers",
    .side = 224,
    .classes = 1000,
    .build = build_googlenet,
    .plain_batch = 32,
    .published_parameters = 6998552,
    .published_gmacs = 1.58,
};
