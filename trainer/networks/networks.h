/* SPDX-License-Identifier: Apache-2.0
 * The networks, for trainer/networks/registry.c only, and the parts they share. */
#ifndef IOBENCH_TRAINER_NETWORKS_NETWORKS_H
#define IOBENCH_TRAINER_NETWORKS_NETWORKS_H

#include "trainer/graph.h"

extern const struct network network_resnet50, network_resnet101, network_resnet152;
extern const struct network network_resnet110, network_tiny;
extern const struct network network_lenet, network_alexnet;
extern const struct network network_vgg16, network_vgg19;
extern const struct network network_googlenet, network_inception_bn, network_inception_v3;

/* Convolution without bias, BN, ReLU: "NAME.conv" and "NAME.bn". */
uint32_t networks_conv_bn_relu(struct graph *graph, const char *name, uint32_t input,
                               uint32_t channels, struct graph_window window);

/* Convolution with bias and ReLU. */
uint32_t networks_conv_relu(struct graph *graph, const char *name, uint32_t input,
                            uint32_t channels, struct graph_window window);

/* A window of h x w with "same" padding for odd sides, stride 1. */
struct graph_window networks_same(uint32_t height, uint32_t width);

#endif
