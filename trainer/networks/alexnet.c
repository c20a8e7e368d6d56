/* SPDX-License-Identifier: Apache-2.0
 * AlexNet with two groups and local response normalisation: Krizhevsky et al. 2012, section 3, and
 * Caffe's bvlc_reference models. A leading padding of 2 lets it take 224 pixels. */
#include "trainer/networks/networks.h"

static uint32_t norm_pool(struct graph *graph, uint32_t input)
{
    uint32_t x = graph_lrn(graph, input, 5, 1e-4, 0.75, 1);

    return graph_max_pool(graph, x, graph_square(3, 2, 0));
}

static uint32_t conv(struct graph *graph, const char *name, uint32_t input, uint32_t channels,
                     struct graph_window window, uint32_t groups)
{
    return graph_relu(graph, graph_convolution(graph, name, input, channels, window, groups, true));
}

static void build_alexnet(struct graph *graph, const uint32_t *depths)
{
    (void)depths;
    uint32_t x = norm_pool(graph, conv(graph, "conv1", 0, 96, graph_square(11, 4, 2), 1));
    x = norm_pool(graph, conv(graph, "conv2", x, 256, graph_square(5, 1, 2), 2));
    x = conv(graph, "conv3", x, 384, graph_square(3, 1, 1), 1);
    x = conv(graph, "conv4", x, 384, graph_square(3, 1, 1), 2);
    x = conv(graph, "conv5", x, 256, graph_square(3, 1, 1), 2);
    x = graph_max_pool(graph, x, graph_square(3, 2, 0));
    x = graph_dropout(graph, graph_relu(graph, graph_fully_connected(graph, "fc6", x, 4096)), 0.5);
    x = graph_dropout(graph, graph_relu(graph, graph_fully_connected(graph, "fc7", x, 4096)), 0.5);
    graph_fully_connected(graph, "fc8", x, graph->classes);
}

const struct network network_alexnet = {
    .name = "alexnet",
    .summary = "AlexNet, two groups",
    .source = "Krizhevsky et al. 2012; Caffe bvlc_alexnet",
    .side = 224,
    .classes = 1000,
    .build = build_alexnet,
    .plain_batch = 256,
    .published_parameters = 60965224,
    .published_gmacs = 0.724,
};
