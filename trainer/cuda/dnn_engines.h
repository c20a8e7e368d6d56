/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn_engines: the engines that cuDNN has for a graph, and plans of them. For trainer/cuda/dnn*.c
 * only.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_ENGINES_H
#define IOBENCH_TRAINER_CUDA_DNN_ENGINES_H

#include "trainer/cuda/dnn_choices.h"
#include "trainer/cuda/dnn_operations.h"

/* Describes a device that need not be there. capability: 80 (A100) or 90
 * (H200). Destroy it with cudnnBackendDestroyDescriptor(). */
int dnn_describe_device(uint32_t capability, cudnnBackendDescriptor_t *device);

/* Engine configurations that compute as the shape asks for: no other precision, and the same bits
 * again if wanted; the likely fastest first, or those that take almost anything. Destroy each of
 * the `count`. -ENOTSUP when there is none. */
int dnn_engines_find(const struct dnn_graph *graph, const struct dnn_shape *shape,
                     cudnnBackendDescriptor_t device, bool deterministic, bool favourites,
                     cudnnBackendDescriptor_t configs[DNN_CONFIGS_MAX], uint32_t *count);

/* A plan of a configuration. device: NULL where there is a handle. */
int dnn_plan_make(cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                  cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *plan);
int dnn_plan_choice(cudnnBackendDescriptor_t plan, struct dnn_choice *choice);
/* The configuration that a choice means for this graph, to which it belongs. An error where it
 * means none, or one that does not compute as the shape asks for: wherever the choice comes from,
 * what is computed is the graph. */
int dnn_engines_choose(struct dnn_graph *graph, const struct dnn_shape *shape,
                       cudnnBackendDescriptor_t device, bool deterministic,
                       const struct dnn_choice *choice, cudnnBackendDescriptor_t *config);
int dnn_plan_workspace(cudnnBackendDescriptor_t plan, uint64_t *bytes);

#endif
