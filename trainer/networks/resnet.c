/* SPDX-License-Identifier: Apache-2.0
 *
 * Residual networks. ImageNet form: He et al. 2016 (arXiv 1512.03385), table 1, with the stride in
 * the 3x3 convolution ("v1.5", as all frameworks train it today). CIFAR form: the same paper,
 * section 4.2, with projection shortcuts where the shape changes. `tiny` is our own: the bottleneck
 * form with one block per stage and a width of 16, small enough to train on a CPU.
 *
 * Recipes start the last BN of each block with gamma 0, except in `tiny`, whose four blocks learn
 * more slowly by that.
 */
#include "trainer/networks/networks.h"

#include <stdio.h>

static uint32_t conv_bn(struct graph *graph, const char *block, const char *part, uint32_t input,
                        uint32_t channels, struct graph_window window, bool ends_block)
{
    char name[GRAPH_NAME_BYTES];

    snprintf(name, sizeof name, "%.30s.conv%s", block, part);
    uint32_t x = graph_convolution(graph, name, input, channels, window, 1, false);
    snprintf(name, sizeof name, "%.30s.bn%s", block, part);
    return graph_batch_norm(graph, name, x, ends_block);
}

static uint32_t shortcut(struct graph *graph, const char *block, uint32_t input, uint32_t channels,
                         uint32_t stride)
{
    if (stride == 1 && graph->nodes[input].shape.channels == channels)
        return input;
    return conv_bn(graph, block, "0", input, channels, graph_square(1, stride, 0), false);
}

static uint32_t conv_bn_relu(struct graph *graph, const char *block, const char *part,
                             uint32_t input, uint32_t channels, struct graph_window window)
{
    return graph_relu(graph, conv_bn(graph, block, part, input, channels, window, false));
}

typedef uint32_t build_block(struct graph *graph, const char *block, uint32_t input, uint32_t width,
                             uint32_t stride, bool starts_as_identity);

static uint32_t bottleneck(struct graph *graph, const char *block, uint32_t input, uint32_t width,
                           uint32_t stride, bool starts_as_identity)
{
    uint32_t x = conv_bn_relu(graph, block, "1", input, width, graph_square(1, 1, 0));

    x = conv_bn_relu(graph, block, "2", x, width, graph_square(3, stride, 1));
    x = conv_bn(graph, block, "3", x, 4 * width, graph_square(1, 1, 0), starts_as_identity);
    return graph_relu(graph, graph_add(graph, x, shortcut(graph, block, input, 4 * width, stride)));
}

static uint32_t basic(struct graph *graph, const char *block, uint32_t input, uint32_t width,
                      uint32_t stride, bool starts_as_identity)
{
    uint32_t x = conv_bn_relu(graph, block, "1", input, width, graph_square(3, stride, 1));

    x = conv_bn(graph, block, "2", x, width, graph_square(3, 1, 1), starts_as_identity);
    return graph_relu(graph, graph_add(graph, x, shortcut(graph, block, input, width, stride)));
}

/* Stages of `depths` blocks, the end after the last one. width: of the first stage. */
static void finish_resnet(struct graph *graph, uint32_t x, const uint32_t *depths,
                          build_block *build, uint32_t width, bool start_as_identities)
{
    for (uint32_t stage = 0; depths[stage]; stage++)
        for (uint32_t i = 0; i < depths[stage]; i++) {
            char name[GRAPH_NAME_BYTES];
            snprintf(name, sizeof name, "stage%u.block%u", stage + 1, i + 1);
            x = build(graph, name, x, width << stage, stage > 0 && i == 0 ? 2 : 1,
                      start_as_identities);
        }
    graph_fully_connected(graph, "fc", graph_global_pool(graph, x), graph->classes);
}

/* The stem is a 7x7 convolution with stride 2 and a max pool. */
static void build_imagenet(struct graph *graph, const uint32_t *depths)
{
    uint32_t x = conv_bn_relu(graph, "stem", "", 0, 64, graph_square(7, 2, 3));

    x = graph_max_pool(graph, x, graph_square(3, 2, 1));
    finish_resnet(graph, x, depths, bottleneck, 64, true);
}

static void build_cifar(struct graph *graph, const uint32_t *depths)
{
    uint32_t x = conv_bn_relu(graph, "stem", "", 0, 16, graph_square(3, 1, 1));

    finish_resnet(graph, x, depths, basic, 16, true);
}

static void build_tiny(struct graph *graph, const uint32_t *depths)
{
    uint32_t x = conv_bn_relu(graph, "stem", "", 0, 16, graph_square(3, 1, 1));

    finish_resnet(graph, x, depths, bottleneck, 16, false);
}

/* "stem.conv" -> "conv1", "stage2.block1.conv0" -> "layer2.0.downsample.0", others of that block
 * "layer2.0.conv1", "fc" -> "fc" (torchvision/models/resnet.py). */
static void torchvision_name(const struct network *network, const char *layer,
                             char name[GRAPH_NAME_BYTES])
{
    unsigned stage, block, number;
    char kind[8];

    (void)network;
    if (sscanf(layer, "stem.%4s", kind) == 1)
        snprintf(name, GRAPH_NAME_BYTES, "%s1", kind);
    else if (sscanf(layer, "stage%u.block%u.%4[a-z]%u", &stage, &block, kind, &number) != 4)
        snprintf(name, GRAPH_NAME_BYTES, "%s", layer);
    else if (number == 0)
        snprintf(name, GRAPH_NAME_BYTES, "layer%u.%u.downsample.%d", stage, block - 1,
                 kind[0] == 'b');
    else
        snprintf(name, GRAPH_NAME_BYTES, "layer%u.%u.%s%u", stage, block - 1, kind, number);
}

/* Parameters are those of torchvision's models. */
#define IMAGENET(LAYERS, PARAMETERS, GMACS, ...)                   \
    const struct network network_resnet##LAYERS = {                \
        .name = "resnet" #LAYERS,                                  \
        .summary = "ResNet-" #LAYERS " v1.5",                      \
        .source = "He et al. 2016; stride in the 3x3 convolution", \
        .side = 224,                                               \
        .classes = 1000,                                           \
        .build = build_imagenet,                                   \
        .torchvision_name = torchvision_name,                      \
        .depths = {__VA_ARGS__},                                   \
        .published_parameters = PARAMETERS,                        \
        .published_gmacs = GMACS}

IMAGENET(50, 25557032, 4.089, 3, 4, 6, 3);
IMAGENET(101, 44549160, 7.801, 3, 4, 23, 3);
IMAGENET(152, 60192808, 11.514, 3, 8, 36, 3);

const struct network network_resnet110 = {
    .name = "resnet110",
    .summary = "ResNet-110 for images of 32 pixels",
    .source = "He et al. 2016, section 4.2; projection short cuts",
    .side = 32,
    .classes = 10,
    .build = build_cifar,
    .depths = {18, 18, 18},
    .published_parameters = 1730714, /* 1.7 M in table 6; counted with projections */
    .published_gmacs = 0.255,
};

const struct network network_tiny = {
    .name = "tiny",
    .summary = "bottleneck ResNet, one block a stage, width 16, to train on a CPU",
    .source = "this project",
    .side = 32,
    .classes = 10,
    .build = build_tiny,
    .depths = {1, 1, 1, 1},
};
