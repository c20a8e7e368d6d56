/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn_operations: a shape as a graph of cuDNN's operations. For trainer/cuda/dnn*.c only.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_OPERATIONS_H
#define IOBENCH_TRAINER_CUDA_DNN_OPERATIONS_H

#include "trainer/cuda/dnn_shape.h"

#include <cudnn.h>

/* A cuDNN status as a code; -ENOTSUP where cuDNN does not support something. */
int dnn_check(cudnnStatus_t status, const char *what);

/* Set or get an attribute, unless the status is already an error. */
void dnn_set(cudnnStatus_t *status, cudnnBackendDescriptor_t made, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, int64_t count, const void *values);
void dnn_get(cudnnStatus_t *status, cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, void *value);

/* NULL: does nothing. */
static inline void dnn_destroy(cudnnBackendDescriptor_t descriptor)
{
    if (descriptor)
        cudnnBackendDestroyDescriptor(descriptor);
}

enum { DNN_OPERATIONS_MAX = 16, DNN_PARTS_MAX = 96 };

/* A tensor's id in the graph. */
static inline int64_t dnn_uid(enum dnn_tensor which)
{
    return (int64_t)which + 1;
}

struct dnn_graph {
    const struct dnn_shape *shape; /* while the graph is built */
    cudnnBackendDescriptor_t operations[DNN_OPERATIONS_MAX];
    uint32_t operation_count;
    cudnnBackendDescriptor_t whole;                     /* the finished graph */
    cudnnBackendDescriptor_t parts[DNN_PARTS_MAX + 34]; /* including those of a choice */
    uint32_t part_count;
    int code; /* first error */
};

/* The graph owns the descriptor and keeps the first error. */
cudnnBackendDescriptor_t dnn_part_begin(struct dnn_graph *graph, cudnnBackendDescriptorType_t type);
void dnn_part_set(struct dnn_graph *graph, cudnnBackendDescriptor_t made,
                  cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void *values);
void dnn_part_finish(struct dnn_graph *graph, cudnnBackendDescriptor_t made);

/* handle: NULL for a described device. */
int dnn_graph_make(struct dnn_graph *graph, cudnnHandle_t handle, const struct dnn_shape *shape);
void dnn_graph_destroy(struct dnn_graph *graph);

#endif
