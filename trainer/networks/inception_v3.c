/* SPDX-License-Identifier: Apache-2.0
 * Inception-v3 without its auxiliary classifier: Szegedy et al. 2016 (arXiv 1512.00567), table 1
 * and figures 5 to 7, with the widths of the published model. */
#include "trainer/networks/networks.h"

#include <stdio.h>

/* The block being built, for the names of its nodes. */
struct builder {
    struct graph *graph;
    const char *block;
    uint32_t part;
};

static uint32_t conv(struct builder *builder, uint32_t input, uint32_t channels,
                     struct graph_window window)
{
    char name[GRAPH_NAME_BYTES];

    snprintf(name, sizeof name, "%.20s.%u", builder->block, ++builder->part);
    return networks_conv_bn_relu(builder->graph, name, input, channels, window);
}

static uint32_t same(struct builder *builder, uint32_t input, uint32_t channels, uint32_t height,
                     uint32_t width)
{
    return conv(builder, input, channels, networks_same(height, width));
}

static uint32_t pool_proj(struct builder *builder, uint32_t input, uint32_t channels)
{
    struct graph_window window = networks_same(3, 3);

    window.count_padding = true;
    return same(builder, graph_average_pool(builder->graph, input, window), channels, 1, 1);
}

static uint32_t block_35(struct graph *graph, const char *name, uint32_t x, uint32_t pool)
{
    struct builder b = {graph, name, 0};
    uint32_t parts[4] = {same(&b, x, 64, 1, 1)};

    parts[1] = same(&b, same(&b, x, 48, 1, 1), 64, 5, 5);
    parts[2] = same(&b, same(&b, same(&b, x, 64, 1, 1), 96, 3, 3), 96, 3, 3);
    parts[3] = pool_proj(&b, x, pool);
    return graph_concat(graph, parts, 4);
}

static uint32_t reduce_35(struct graph *graph, const char *name, uint32_t x)
{
    struct builder b = {graph, name, 0};
    uint32_t parts[3] = {conv(&b, x, 384, graph_square(3, 2, 0))};

    parts[1] = conv(&b, same(&b, same(&b, x, 64, 1, 1), 96, 3, 3), 96, graph_square(3, 2, 0));
    parts[2] = graph_max_pool(graph, x, graph_square(3, 2, 0));
    return graph_concat(graph, parts, 3);
}

static uint32_t block_17(struct graph *graph, const char *name, uint32_t x, uint32_t width)
{
    struct builder b = {graph, name, 0};
    uint32_t parts[4] = {same(&b, x, 192, 1, 1)};

    parts[1] = same(&b, same(&b, same(&b, x, width, 1, 1), width, 1, 7), 192, 7, 1);
    uint32_t y = same(&b, same(&b, x, width, 1, 1), width, 7, 1);
    y = same(&b, same(&b, y, width, 1, 7), width, 7, 1);
    parts[2] = same(&b, y, 192, 1, 7);
    parts[3] = pool_proj(&b, x, 192);
    return graph_concat(graph, parts, 4);
}

static uint32_t reduce_17(struct graph *graph, const char *name, uint32_t x)
{
    struct builder b = {graph, name, 0};
    uint32_t parts[3] = {conv(&b, same(&b, x, 192, 1, 1), 320, graph_square(3, 2, 0))};
    uint32_t y = same(&b, same(&b, same(&b, x, 192, 1, 1), 192, 1, 7), 192, 7, 1);

    parts[1] = conv(&b, y, 192, graph_square(3, 2, 0));
    parts[2] = graph_max_pool(graph, x, graph_square(3, 2, 0));
    return graph_concat(graph, parts, 3);
}

static uint32_t block_8(struct graph *graph, const char *name, uint32_t x)
{
    struct builder b = {graph, name, 0};
    uint32_t parts[6] = {same(&b, x, 320, 1, 1)};
    uint32_t y = same(&b, x, 384, 1, 1);

    parts[1] = same(&b, y, 384, 1, 3);
    parts[2] = same(&b, y, 384, 3, 1);
    y = same(&b, same(&b, x, 448, 1, 1), 384, 3, 3);
    parts[3] = same(&b, y, 384, 1, 3);
    parts[4] = same(&b, y, 384, 3, 1);
    parts[5] = pool_proj(&b, x, 192);
    return graph_concat(graph, parts, 6);
}

static void build_inception_v3(struct graph *graph, const uint32_t *depths)
{
    struct builder stem = {graph, "stem", 0};

    (void)depths;
    uint32_t x = conv(&stem, 0, 32, graph_square(3, 2, 0));
    x = conv(&stem, x, 32, graph_square(3, 1, 0));
    x = same(&stem, x, 64, 3, 3);
    x = graph_max_pool(graph, x, graph_square(3, 2, 0));
    x = same(&stem, x, 80, 1, 1);
    x = conv(&stem, x, 192, graph_square(3, 1, 0));
    x = graph_max_pool(graph, x, graph_square(3, 2, 0));
    x = block_35(graph, "mixed5b", x, 32);
    x = block_35(graph, "mixed5c", x, 64);
    x = block_35(graph, "mixed5d", x, 64);
    x = reduce_35(graph, "mixed6a", x);
    x = block_17(graph, "mixed6b", x, 128);
    x = block_17(graph, "mixed6c", x, 160);
    x = block_17(graph, "mixed6d", x, 160);
    x = block_17(graph, "mixed6e", x, 192);
    x = reduce_17(graph, "mixed7a", x);
    x = block_8(graph, "mixed7b", x);
    x = block_8(graph, "mixed7c", x);
    x = graph_dropout(graph, graph_global_pool(graph, x), 0.5);
    graph_fully_connected(graph, "fc", x, graph->classes);
}

const struct network network_inception_v3 = {
    .name = "inception-v3",
    .summary = "Inception-v3",
    .source = "Szegedy et al. 2016, without the auxiliary classifier",
    .side = 299,
    .classes = 1000,
    .build = build_inception_v3,
    .published_parameters = 23834568, /* torchvision inception_v3 without AuxLogits */
    .published_gmacs = 5.713,
    .rate_share = 0.125, /* figures: docs/training.md, "Does every network learn?" */
};
