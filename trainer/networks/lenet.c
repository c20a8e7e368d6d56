/* SPDX-License-Identifier: Apache-2.0
 * LeNet as frameworks ship it: two 5x5 convolutions of 20 and 50 channels, each with a 2x2 max
 * pool, then layers of 500 and `classes` (Caffe, examples/mnist); with colour images. */
#include "trainer/networks/networks.h"

static void build_lenet(struct graph *graph, const uint32_t *depths)
{
    (void)depths;
    uint32_t x = graph_convolution(graph, "conv1", 0, 20, graph_square(5, 1, 0), 1, true);
    x = graph_max_pool(graph, x, graph_square(2, 2, 0));
    x = graph_convolution(graph, "conv2", x, 50, graph_square(5, 1, 0), 1, true);
    x = graph_max_pool(graph, x, graph_square(2, 2, 0));
    x = graph_relu(graph, graph_fully_connected(graph, "fc1", x, 500));
    graph_fully_connected(graph, "fc2", x, graph->classes);
}

const struct network network_lenet = {
    .name = "lenet",
    .summary = "LeNet, two convolutions",
    .source = "LeCun et al. 1998, as Caffe ships it",
    .side = 28,
    .classes = 10,
    .build = build_lenet,
    .plain_batch = 64,
    .published_parameters = 431080 + 20 * 25 * 2, /* the published one has one input channel */
};
