/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn_engines: the engines that cuDNN has for a graph, and plans made from them. For
 * trainer/cuda/dnn*.c only.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_ENGINES_H
#define IOBENCH_TRAINER_CUDA_DNN_ENGINES_H

#include "trainer/cuda/dnn_choices.h"
#include "trainer/cuda/dnn_operations.h"

/* Describe a device that need not be present. capability: 80 (A100) or 90 (H200, or the one whose
 * name has `part`, if not NULL: "H100"). Destroy it with dnn_destroy(). */
int dnn_describe_device(uint32_t capability, const char *part, cudnnBackendDescriptor_t *device);

/* Find engine configurations for the shape: of its precision only, and deterministic if wanted;
 * cuDNN's favourites, likely fastest first, or its fallbacks. Destroy each of the `count`. -ENOTSUP
 * if there is none. */
int dnn_engines_find(const struct dnn_graph *graph, const struct dnn_shape *shape,
                     cudnnBackendDescriptor_t device, bool deterministic, bool favourites,
                     cudnnBackendDescriptor_t configs[DNN_CONFIGS_MAX], uint32_t *count);

/* Make a plan from a configuration. device: NULL if there is a handle. */
int dnn_plan_make(cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                  cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *plan);
int dnn_plan_choice(cudnnBackendDescriptor_t plan, struct dnn_choice *choice);
/* Make the configuration of a choice for this graph, which owns it. Fails if there is none or it
 * does not compute what the shape requires: whatever the source of the choice, the graph is what is
 * computed. */
int dnn_engines_choose(struct dnn_graph *graph, const struct dnn_shape *shape,
                       cudnnBackendDescriptor_t device, bool deterministic,
                       const struct dnn_choice *choice, cudnnBackendDescriptor_t *config);
int dnn_plan_workspace(cudnnBackendDescriptor_t plan, uint64_t *bytes);

#endif
