/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn_graph: a convolution, and what is fused with it, in the words of cuDNN's graph interface;
 * and the engines that take it.
 * For trainer/cuda/dnn*.c alone.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_GRAPH_H
#define IOBENCH_TRAINER_CUDA_DNN_GRAPH_H

#include "trainer/cuda/dnn.h"
#include "trainer/cuda/dnn_choices.h"

#include <cudnn.h>

/* cuDNN's codes as ours; -ENOTSUP where it says that it does not support something. */
int dnn_check(cudnnStatus_t status, const char *what);

/* A device that need not be there, as cuDNN wants it described. capability: 80 (A100) or 90
 * (H200). Destroy it with cudnnBackendDestroyDescriptor(). */
int dnn_describe_device(uint32_t capability, cudnnBackendDescriptor_t *device);

/* dnn_operations.c makes graphs, dnn_graph.c asks for their engines. */
enum { DNN_OPERATIONS_MAX = 16, DNN_PARTS_MAX = 96 };

/* What a tensor is called there. */
static inline int64_t dnn_uid(enum dnn_tensor which)
{
    return (int64_t)which + 1;
}

struct dnn_graph {
    const struct dnn_shape *shape; /* while it is made */
    cudnnBackendDescriptor_t operations[DNN_OPERATIONS_MAX];
    uint32_t operation_count;
    cudnnBackendDescriptor_t whole;                     /* all of them, finished */
    cudnnBackendDescriptor_t parts[DNN_PARTS_MAX + 34]; /* and those of a choice */
    uint32_t part_count;
    int code; /* first error */
};

/* A descriptor that goes with its graph, in which the first error is kept. */
cudnnBackendDescriptor_t dnn_part_begin(struct dnn_graph *graph, cudnnBackendDescriptorType_t type);
void dnn_part_set(struct dnn_graph *graph, cudnnBackendDescriptor_t made,
                  cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void *values);
void dnn_part_finish(struct dnn_graph *graph, cudnnBackendDescriptor_t made);

/* handle may be NULL where a device is described. */
int dnn_graph_make(struct dnn_graph *graph, cudnnHandle_t handle, const struct dnn_shape *shape);
void dnn_graph_destroy(struct dnn_graph *graph);

/* Engine configurations that compute as the shape asks for: no other precision, and the same bits
 * again if wanted; the likely fastest first, or those that take almost anything. Destroy each of
 * the `count`. -ENOTSUP when there is none. */
int dnn_graph_configs(const struct dnn_graph *graph, const struct dnn_shape *shape,
                      cudnnBackendDescriptor_t device, bool deterministic, bool favourites,
                      cudnnBackendDescriptor_t configs[DNN_CONFIGS_MAX], uint32_t *count);

/* A plan of a configuration. device: NULL where there is a handle. */
int dnn_plan_make(cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                  cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *plan);
int dnn_plan_choice(cudnnBackendDescriptor_t plan, struct dnn_choice *choice);
/* The configuration that a choice means for this graph, to which it belongs. An error where it
 * means none, or one that does not compute as the shape asks for: wherever the choice comes from,
 * what is computed is the graph. */
int dnn_graph_choose(struct dnn_graph *graph, const struct dnn_shape *shape,
                     cudnnBackendDescriptor_t device, bool deterministic,
                     const struct dnn_choice *choice, cudnnBackendDescriptor_t *config);
int dnn_plan_workspace(cudnnBackendDescriptor_t plan, uint64_t *bytes);

#endif
