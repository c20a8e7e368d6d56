/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks: one section each, with its source, and the registry in the order users see them.
 */
#include "trainer/graph.h"

#include "base/option.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- parts of several networks ---- */

/* Convolution without bias and BN: "BLOCK.convPART", "BLOCK.bnPART". */
static uint32_t conv_bn(struct graph *graph, const char *block, const char *part, uint32_t input,
                        uint32_t channels, struct kernel_window window, bool ends_block)
{
    char name[GRAPH_NAME_BYTES];

    snprintf(name, sizeof name, "%.30s.conv%s", block, part);
    uint32_t x = graph_convolution(graph, name, input, channels, window, 1, false);
    snprintf(name, sizeof name, "%.30s.bn%s", block, part);
    return graph_batch_norm(graph, name, x, ends_block);
}

static uint32_t conv_bn_relu(struct graph *graph, const char *block, const char *part,
                             uint32_t input, uint32_t channels, struct kernel_window window)
{
    return graph_relu(graph, conv_bn(graph, block, part, input, channels, window, false));
}

static uint32_t conv_relu(struct graph *graph, const char *name, uint32_t input, uint32_t channels,
                          struct kernel_window window, uint32_t groups)
{
    return graph_relu(graph, graph_convolution(graph, name, input, channels, window, groups, true));
}

/* A window of h x w with "same" padding for odd sides, stride 1. */
static struct kernel_window same_size(uint32_t height, uint32_t width)
{
    return (struct kernel_window){.height = height,
                                  .width = width,
                                  .stride = 1,
                                  .pad_top = height / 2,
                                  .pad_bottom = height / 2,
                                  .pad_left = width / 2,
                                  .pad_right = width / 2};
}

/* The fully connected layers of AlexNet and VGG. */
static void add_classifier(struct graph *graph, uint32_t x)
{
    x = graph_dropout(graph, graph_relu(graph, graph_fully_connected(graph, "fc6", x, 4096)), 0.5);
    x = graph_dropout(graph, graph_relu(graph, graph_fully_connected(graph, "fc7", x, 4096)), 0.5);
    graph_fully_connected(graph, "fc8", x, graph->classes);
}

/* ---- residual networks ----
 *
 * ImageNet form: He et al. 2016 (arXiv 1512.03385), table 1, with the stride in the 3x3 convolution
 * ("v1.5", as all frameworks train it today). CIFAR form: the same paper, section 4.2, with
 * projection shortcuts where the shape changes. `tiny` is our own: the bottleneck form with one
 * block per stage and a width of 16, small enough to train on a CPU.
 *
 * Recipes start the last BN of each block with gamma 0, except in `tiny`, whose four blocks learn
 * more slowly by that. */

static uint32_t shortcut(struct graph *graph, const char *block, uint32_t input, uint32_t channels,
                         uint32_t stride)
{
    if (stride == 1 && graph->nodes[input].shape.channels == channels)
        return input;
    return conv_bn(graph, block, "0", input, channels, graph_square(1, stride, 0), false);
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

/* Stages of `depths` blocks, the end after the last one. width: of the first stage. ImageNet's stem
 * is a 7x7 convolution with stride 2 and a max pool. */
static void build_resnet(struct graph *graph, const uint32_t *depths, build_block *build,
                         uint32_t width, bool start_as_identities)
{
    const bool large = width == 64;
    uint32_t x = conv_bn_relu(graph, "stem", "", 0, width,
                              large ? graph_square(7, 2, 3) : graph_square(3, 1, 1));

    if (large)
        x = graph_max_pool(graph, x, graph_square(3, 2, 1));
    for (uint32_t stage = 0; depths[stage]; stage++)
        for (uint32_t i = 0; i < depths[stage]; i++) {
            char name[GRAPH_NAME_BYTES];
            snprintf(name, sizeof name, "stage%u.block%u", stage + 1, i + 1);
            x = build(graph, name, x, width << stage, stage > 0 && i == 0 ? 2 : 1,
                      start_as_identities);
        }
    graph_fully_connected(graph, "fc", graph_global_pool(graph, x), graph->classes);
}

static void build_imagenet(struct graph *graph, const uint32_t *depths)
{
    build_resnet(graph, depths, bottleneck, 64, true);
}

static void build_cifar(struct graph *graph, const uint32_t *depths)
{
    build_resnet(graph, depths, basic, 16, true);
}

static void build_tiny(struct graph *graph, const uint32_t *depths)
{
    build_resnet(graph, depths, bottleneck, 16, false);
}

/* "stem.conv" -> "conv1", "stage2.block1.conv0" -> "layer2.0.downsample.0", others of that block
 * "layer2.0.conv1", "fc" -> "fc" (torchvision/models/resnet.py). */
static void resnet_name(const struct network *network, const char *layer,
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
    static const struct network resnet##LAYERS = {                 \
        .name = "resnet" #LAYERS,                                  \
        .summary = "ResNet-" #LAYERS " v1.5",                      \
        .source = "He et al. 2016; stride in the 3x3 convolution", \
        .side = 224,                                               \
        .classes = 1000,                                           \
        .build = build_imagenet,                                   \
        .torchvision_name = resnet_name,                           \
        .depths = {__VA_ARGS__},                                   \
        .published_parameters = PARAMETERS,                        \
        .published_gmacs = GMACS}

IMAGENET(50, 25557032, 4.089, 3, 4, 6, 3);
IMAGENET(101, 44549160, 7.801, 3, 4, 23, 3);
IMAGENET(152, 60192808, 11.514, 3, 8, 36, 3);

static const struct network resnet110 = {
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

static const struct network tiny = {
    .name = "tiny",
    .summary = "bottleneck ResNet, one block a stage, width 16, to train on a CPU",
    .source = "this project",
    .side = 32,
    .classes = 10,
    .build = build_tiny,
    .depths = {1, 1, 1, 1},
};

/* ---- LeNet ----
 *
 * As frameworks ship it: two 5x5 convolutions of 20 and 50 channels, each with a 2x2 max pool, then
 * layers of 500 and `classes` (Caffe, examples/mnist); with colour images. */

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

static const struct network lenet = {
    .name = "lenet",
    .summary = "LeNet, two convolutions",
    .source = "LeCun et al. 1998, as Caffe ships it",
    .side = 28,
    .classes = 10,
    .build = build_lenet,
    .plain_batch = 64,
    .published_parameters = 431080 + 20 * 25 * 2, /* the published one has one input channel */
};

/* ---- AlexNet ----
 *
 * With two groups and local response normalisation: Krizhevsky et al. 2012, section 3, and Caffe's
 * bvlc_reference models. A leading padding of 2 lets it take 224 pixels. */

static uint32_t norm_pool(struct graph *graph, uint32_t input)
{
    uint32_t x = graph_lrn(graph, input, 5, 1e-4, 0.75, 1);

    return graph_max_pool(graph, x, graph_square(3, 2, 0));
}

static void build_alexnet(struct graph *graph, const uint32_t *depths)
{
    (void)depths;
    uint32_t x = norm_pool(graph, conv_relu(graph, "conv1", 0, 96, graph_square(11, 4, 2), 1));
    x = norm_pool(graph, conv_relu(graph, "conv2", x, 256, graph_square(5, 1, 2), 2));
    x = conv_relu(graph, "conv3", x, 384, graph_square(3, 1, 1), 1);
    x = conv_relu(graph, "conv4", x, 384, graph_square(3, 1, 1), 2);
    x = conv_relu(graph, "conv5", x, 256, graph_square(3, 1, 1), 2);
    add_classifier(graph, graph_max_pool(graph, x, graph_square(3, 2, 0)));
}

static const struct network alexnet = {
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

/* ---- VGG ----
 *
 * Simonyan and Zisserman 2015 (arXiv 1409.1556), table 1, columns D (16) and E (19). */

static void build_vgg(struct graph *graph, const uint32_t *depths)
{
    static const uint32_t widths[] = {64, 128, 256, 512, 512};
    uint32_t x = 0;

    for (uint32_t stage = 0; stage < 5; stage++) {
        for (uint32_t i = 0; i < depths[stage]; i++) {
            char name[GRAPH_NAME_BYTES];
            snprintf(name, sizeof name, "conv%u_%u", stage + 1, i + 1);
            x = conv_relu(graph, name, x, widths[stage], graph_square(3, 1, 1), 1);
        }
        x = graph_max_pool(graph, x, graph_square(2, 2, 0));
    }
    add_classifier(graph, x);
}

/* torchvision numbers its layers, convolutions, ReLUs, pools and dropouts alike
 * (torchvision/models/vgg.py). */
static void vgg_name(const struct network *network, const char *layer, char name[GRAPH_NAME_BYTES])
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
    static const struct network vgg##LAYERS = {                                \
        .name = "vgg" #LAYERS,                                                 \
        .summary = "VGG-" #LAYERS,                                             \
        .source = "Simonyan and Zisserman 2015, configuration " CONFIGURATION, \
        .side = 224,                                                           \
        .classes = 1000,                                                       \
        .build = build_vgg,                                                    \
        .torchvision_name = vgg_name,                                          \
        .depths = {__VA_ARGS__},                                               \
        .plain_batch = 256,                                                    \
        .published_parameters = PARAMETERS,                                    \
        .published_gmacs = GMACS}

VGG(16, "D", 138357544, 15.470, 2, 2, 3, 3, 3);
VGG(19, "E", 143667240, 19.632, 2, 2, 4, 4, 4);

/* ---- GoogLeNet ----
 *
 * Without its auxiliary classifiers: Szegedy et al. 2015 (arXiv 1409.4842), table 1, as Caffe's
 * bvlc_googlenet computes it (pools round up). */

struct googlenet_widths {
    const char *name;
    uint32_t one, reduce3, three, reduce5, five, pool;
};

/* 3x3 with stride 2, rounded up: padding for the incomplete last window. */
static uint32_t pool_up(struct graph *graph, uint32_t input)
{
    const struct graph_shape *shape = &graph->nodes[input].shape;
    struct kernel_window window = graph_square(3, 2, 0);

    window.pad_bottom = shape->height % 2 == 0;
    window.pad_right = shape->width % 2 == 0;
    return graph_max_pool(graph, input, window);
}

static uint32_t googlenet_part(struct graph *graph, const char *block, const char *name,
                               uint32_t input, uint32_t channels, uint32_t side)
{
    char text[GRAPH_NAME_BYTES];

    snprintf(text, sizeof text, "%.20s.%.20s", block, name);
    return conv_relu(graph, text, input, channels, same_size(side, side), 1);
}

static uint32_t inception(struct graph *graph, uint32_t x, const struct googlenet_widths *widths)
{
    const char *name = widths->name;
    uint32_t parts[] = {
        googlenet_part(graph, name, "1x1", x, widths->one, 1),
        googlenet_part(graph, name, "3x3",
                       googlenet_part(graph, name, "3x3_reduce", x, widths->reduce3, 1),
                       widths->three, 3),
        googlenet_part(graph, name, "5x5",
                       googlenet_part(graph, name, "5x5_reduce", x, widths->reduce5, 1),
                       widths->five, 5),
        googlenet_part(graph, name, "pool_proj", graph_max_pool(graph, x, same_size(3, 3)),
                       widths->pool, 1),
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
    uint32_t x = conv_relu(graph, "conv1", 0, 64, graph_square(7, 2, 3), 1);
    x = graph_lrn(graph, pool_up(graph, x), 5, 1e-4, 0.75, 1);
    x = conv_relu(graph, "conv2_reduce", x, 64, graph_square(1, 1, 0), 1);
    x = conv_relu(graph, "conv2", x, 192, graph_square(3, 1, 1), 1);
    x = pool_up(graph, graph_lrn(graph, x, 5, 1e-4, 0.75, 1));
    for (int i = 0; i < 9; i++) {
        x = inception(graph, x, &blocks[i]);
        if (i == 1 || i == 6)
            x = pool_up(graph, x);
    }
    x = graph_dropout(graph, graph_global_pool(graph, x), 0.4);
    graph_fully_connected(graph, "fc", x, graph->classes);
}

static const struct network googlenet = {
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

/* ---- Inception with batch normalisation ----
 *
 * Ioffe and Szegedy 2015 (arXiv 1502.03167), figure 5, with the widths of MXNet's inception-bn. */

struct inception_widths {
    const char *name;
    uint32_t one, reduce3, three, reduce_double, twice, pool; /* one 0: it halves the plane */
    bool max_pool;
};

static uint32_t inception_bn_part(struct graph *graph, const char *block, const char *name,
                                  uint32_t input, uint32_t channels, uint32_t side, uint32_t stride)
{
    char text[GRAPH_NAME_BYTES];

    snprintf(text, sizeof text, "%.20s.%.20s", block, name);
    return conv_bn_relu(graph, text, "", input, channels, graph_square(side, stride, side / 2));
}

static uint32_t inception_bn_block(struct graph *graph, uint32_t x,
                                   const struct inception_widths *widths)
{
    const char *name = widths->name;
    const uint32_t stride = widths->one ? 1 : 2;
    uint32_t parts[4], count = 0;

    if (widths->one)
        parts[count++] = inception_bn_part(graph, name, "1x1", x, widths->one, 1, 1);
    uint32_t y = inception_bn_part(graph, name, "3x3_reduce", x, widths->reduce3, 1, 1);
    parts[count++] = inception_bn_part(graph, name, "3x3", y, widths->three, 3, stride);
    y = inception_bn_part(graph, name, "double_3x3_reduce", x, widths->reduce_double, 1, 1);
    y = inception_bn_part(graph, name, "double_3x3_0", y, widths->twice, 3, 1);
    parts[count++] = inception_bn_part(graph, name, "double_3x3_1", y, widths->twice, 3, stride);
    struct kernel_window window = graph_square(3, stride, 1);
    y = widths->max_pool ? graph_max_pool(graph, x, window) : graph_average_pool(graph, x, window);
    if (widths->pool)
        y = inception_bn_part(graph, name, "proj", y, widths->pool, 1, 1);
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
    uint32_t x = conv_bn_relu(graph, "conv1", "", 0, 64, graph_square(7, 2, 3));
    x = graph_max_pool(graph, x, graph_square(3, 2, 1));
    x = conv_bn_relu(graph, "conv2_reduce", "", x, 64, graph_square(1, 1, 0));
    x = conv_bn_relu(graph, "conv2", "", x, 192, graph_square(3, 1, 1));
    x = graph_max_pool(graph, x, graph_square(3, 2, 1));
    for (int i = 0; i < 10; i++)
        x = inception_bn_block(graph, x, &blocks[i]);
    graph_fully_connected(graph, "fc", graph_global_pool(graph, x), graph->classes);
}

static const struct network inception_bn = {
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

/* ---- Inception-v3 ----
 *
 * Without its auxiliary classifier: Szegedy et al. 2016 (arXiv 1512.00567), table 1 and figures 5
 * to 7, with the widths of the published model. */

/* The block being built, for the names of its nodes. */
struct builder {
    struct graph *graph;
    const char *block;
    uint32_t part;
};

static uint32_t add_part(struct builder *builder, uint32_t input, uint32_t channels,
                         struct kernel_window window)
{
    char name[GRAPH_NAME_BYTES];

    snprintf(name, sizeof name, "%.20s.%u", builder->block, ++builder->part);
    return conv_bn_relu(builder->graph, name, "", input, channels, window);
}

static uint32_t same(struct builder *builder, uint32_t input, uint32_t channels, uint32_t height,
                     uint32_t width)
{
    return add_part(builder, input, channels, same_size(height, width));
}

static uint32_t pool_proj(struct builder *builder, uint32_t input, uint32_t channels)
{
    struct kernel_window window = same_size(3, 3);

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
    uint32_t parts[3] = {add_part(&b, x, 384, graph_square(3, 2, 0))};

    parts[1] = add_part(&b, same(&b, same(&b, x, 64, 1, 1), 96, 3, 3), 96, graph_square(3, 2, 0));
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
    uint32_t parts[3] = {add_part(&b, same(&b, x, 192, 1, 1), 320, graph_square(3, 2, 0))};
    uint32_t y = same(&b, same(&b, same(&b, x, 192, 1, 1), 192, 1, 7), 192, 7, 1);

    parts[1] = add_part(&b, y, 192, graph_square(3, 2, 0));
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
    uint32_t x = add_part(&stem, 0, 32, graph_square(3, 2, 0));
    x = add_part(&stem, x, 32, graph_square(3, 1, 0));
    x = same(&stem, x, 64, 3, 3);
    x = graph_max_pool(graph, x, graph_square(3, 2, 0));
    x = same(&stem, x, 80, 1, 1);
    x = add_part(&stem, x, 192, graph_square(3, 1, 0));
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

static const struct network inception_v3 = {
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

/* ---- the registry ---- */

const struct network *const network_registry[] = {
    &resnet50, &resnet101, &resnet152, &resnet110,    &tiny,         &lenet, &alexnet,
    &vgg16,    &vgg19,     &googlenet, &inception_bn, &inception_v3, NULL};

const struct network *network_find(const char *name)
{
    struct nearest nearest = nearest_start(name);

    for (const struct network *const *network = network_registry; *network; network++) {
        if (strcmp((*network)->name, name) == 0)
            return *network;
        nearest_offer(&nearest, (*network)->name);
    }
    nearest_fail(&nearest, EINVAL, "unknown network");
    return NULL;
}

struct graph *network_build(const struct network *network, uint32_t side, uint32_t classes)
{
    struct graph *graph = graph_create((struct graph_shape){3, side, side}, classes);

    if (!graph)
        return NULL;
    network->build(graph, network->depths);
    if (graph_seal(graph) == 0)
        return graph;
    graph_destroy(graph);
    return NULL;
}
