/* SPDX-License-Identifier: Apache-2.0
 *
 * weights: parameters and running statistics of a network in a safetensors file, under the names
 * and in the shapes of torchvision's model where it has the same network, else under our own:
 * LAYER.weight, LAYER.bias, and for batch norm also LAYER.running_mean, LAYER.running_var.
 *
 * Arrays are in the canonical layout of trainer/graph.h. Returns 0 or a negative errno with a
 * reason.
 */
#ifndef IOBENCH_TRAINER_WEIGHTS_H
#define IOBENCH_TRAINER_WEIGHTS_H

#include "trainer/graph.h"

/* The file has each tensor of the network in its shape, as F32, F16 or BF16, and no other but
 * counters of batches (.num_batches_tracked). Statistics may be missing from none of its layers. */
int weights_read(const char *path, const struct network *network, const struct graph *graph,
                 float *parameters, float *statistics);
/* -EEXIST if there is a file. The file appears when it is complete and synced. */
int weights_write(const char *path, const struct network *network, const struct graph *graph,
                  float *parameters, float *statistics);

#endif
