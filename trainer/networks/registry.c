/* SPDX-License-Identifier: Apache-2.0
 * The networks, in the order users see them. */
#include "base/nearest.h"
#include "trainer/networks/networks.h"

#include <errno.h>
#include <string.h>

const struct network *const network_registry[] = {
    &network_resnet50,
    &network_resnet101,
    &network_resnet152,
    &network_resnet110,
    &network_tiny,
    &network_lenet,
    &network_alexnet,
    &network_vgg16,
    &network_vgg19,
    &network_googlenet,
    &network_inception_bn,
    &network_inception_v3,
    NULL,
};

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
