/* SPDX-License-Identifier: Apache-2.0
 * The networks, in the order users see them. */
#include "base/fail.h"
#include "trainer/networks/networks.h"

#include <errno.h>
#include <stdio.h>
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
    char names[256] = "";
    size_t used = 0;

    for (const struct network *const *network = network_registry; *network; network++) {
        if (strcmp((*network)->name, name) == 0)
            return *network;
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     (*network)->name);
    }
    fail(EINVAL, "unknown network '%s'; known: %s", name, names);
    return NULL;
}
