/* SPDX-License-Identifier: Apache-2.0
 * Parts shared by several networks. */
#include "trainer/networks/networks.h"

#include <stdio.h>

uint32_t networks_conv_bn_relu(struct graph *graph, const char *name, uint32_t input,
                               uint32_t channels, struct graph_window window)
{
    char text[GRAPH_NAME_BYTES];

    snprintf(text, sizeof text, "%s.conv", name);
    uint32_t x = graph_convolution(graph, text, input, channels, window, 1, false);
    snprintf(text, sizeof text, "%s.bn", name);
    return graph_relu(graph, graph_batch_norm(graph, text, x, false));
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
