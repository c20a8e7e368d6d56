/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN has engines for the forms below, but none for equivalent ones: in the backward pass, for
 * example, BN before a ReLU must be written as (x - mean) * inverse * gamma + beta.
 */
#include "trainer/cuda/dnn_operations.h"

#include "base/fail.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

enum { TENSOR_ALIGNMENT = 16 };

typedef cudnnBackendDescriptor_t part;

/* ---- descriptors ---- */

int dnn_check(cudnnStatus_t status, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return 0;
    char more[256] = "";
    cudnnGetLastErrorString(more, sizeof more);
    /* 3000 to 3999: not supported */
    return fail(status >= CUDNN_STATUS_NOT_SUPPORTED && status < 4000 ? ENOTSUP : EIO,
                "backend cuda: cuDNN: %s: %s %s", what, cudnnGetErrorString(status), more);
}

void dnn_set(cudnnStatus_t *status, part made, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (!*status)
        *status = cudnnBackendSetAttribute(made, name, type, count, values);
}

void dnn_get(cudnnStatus_t *status, part from, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, void *value)
{
    int64_t count = 0;

    if (!*status)
        *status = cudnnBackendGetAttribute(from, name, type, 1, &count, value);
}

part dnn_part_begin(struct dnn_graph *graph, cudnnBackendDescriptorType_t type)
{
    part made = NULL;

    if (graph->code)
        return NULL;
    assert(graph->part_count < sizeof graph->parts / sizeof *graph->parts);
    graph->code = dnn_check(cudnnBackendCreateDescriptor(type, &made), "make a descriptor");
    if (made)
        graph->parts[graph->part_count++] = made;
    return made;
}

void dnn_part_set(struct dnn_graph *graph, part made, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (graph->code == 0)
        graph->code = dnn_check(cudnnBackendSetAttribute(made, name, type, count, values),
                                "describe a convolution");
}

void dnn_part_finish(struct dnn_graph *graph, part made)
{
    if (graph->code == 0)
        graph->code = dnn_check(cudnnBackendFinalize(made), "describe a convolution");
}

/* Set an attribute to another descriptor. */
static void join(struct dnn_graph *graph, part made, cudnnBackendAttributeName_t name, part other)
{
    dnn_part_set(graph, made, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

/* ---- tensors ---- */

static cudnnDataType_t type_of(const struct dnn_shape *shape, enum dnn_tensor which)
{
    static const cudnnDataType_t types[] = {[DNN_FLOAT] = CUDNN_DATA_FLOAT,
                                            [DNN_HALF] = CUDNN_DATA_HALF,
                                            [DNN_BFLOAT] = CUDNN_DATA_BFLOAT16,
                                            [DNN_INT8] = CUDNN_DATA_INT8};

    return types[dnn_number(shape, which)];
}

/* Add an NHWC tensor. */
static part add_tensor(struct dnn_graph *graph, enum dnn_extent extent, cudnnDataType_t numbers,
                       int64_t id, bool stored)
{
    const int64_t alignment = TENSOR_ALIGNMENT;
    const bool is_virtual = !stored;
    int64_t dims[4];
    part made = dnn_part_begin(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

    dnn_dims(graph->shape, extent, dims);
    const int64_t strides[] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    dnn_part_set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &numbers);
    dnn_part_set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    dnn_part_set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    dnn_part_set(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    dnn_part_set(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (is_virtual)
        dnn_part_set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    dnn_part_finish(graph, made);
    return made;
}

/* A tensor in memory. */
static part tensor(struct dnn_graph *graph, enum dnn_tensor which)
{
    return add_tensor(graph, dnn_extent(graph->shape, which), type_of(graph->shape, which),
                      dnn_uid(which), true);
}

/* A tensor between two operations, never stored. */
static part between_of(struct dnn_graph *graph, enum dnn_extent extent, cudnnDataType_t numbers)
{
    return add_tensor(graph, extent, numbers, dnn_uid(DNN_TENSORS) + graph->part_count, false);
}

static part between(struct dnn_graph *graph, enum dnn_extent extent)
{
    return between_of(graph, extent, CUDNN_DATA_FLOAT);
}

/* ---- the convolution ---- */

/* Padding after the input; equal to the padding before it if that leaves the output unchanged,
 * since most engines support nothing else. Pixels that no window reaches do not matter. */
static int64_t behind(uint32_t in, uint32_t out, uint32_t window, uint32_t stride, uint32_t before)
{
    const int64_t needed = ((int64_t)out - 1) * stride + window - in - before;

    if (needed <= before && before < needed + stride)
        return before;
    return needed > 0 ? needed : 0;
}

static part convolution(struct dnn_graph *graph)
{
    const struct kernel_window *window = &graph->shape->window;
    const cudnnDataType_t compute = graph->shape->int8 ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dimensions = 2, ones[] = {1, 1};
    const int64_t strides[] = {window->stride, window->stride};
    const int64_t before[] = {window->pad_top, window->pad_left};
    const int64_t after[] = {behind(window->in_height, window->out_height, window->height,
                                    window->stride, window->pad_top),
                             behind(window->in_width, window->out_width, window->width,
                                    window->stride, window->pad_left)};
    part made = dnn_part_begin(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

    dnn_part_set(graph, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1,
                 &dimensions);
    dnn_part_set(graph, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    dnn_part_set(graph, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
                 &mode);
    dnn_part_set(graph, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
    dnn_part_set(graph, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
    dnn_part_set(graph, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    dnn_part_set(graph, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    dnn_part_finish(graph, made);
    return made;
}

/* The attributes of the three kinds have the same meaning and different numbers. */
static const struct operation_kind {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, convolution, input, weight, output;
} kinds[] = {
    [DNN_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [DNN_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [DNN_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static void add(struct dnn_graph *graph, part operation)
{
    dnn_part_finish(graph, operation);
    if (graph->code)
        return;
    assert(graph->operation_count < DNN_OPERATIONS_MAX);
    graph->operations[graph->operation_count++] = operation;
}

static void add_convolution(struct dnn_graph *graph, part input, part output)
{
    const struct operation_kind *kind = &kinds[graph->shape->kind];
    const float one = 1, zero = 0;
    part weight = tensor(graph, DNN_WEIGHTS), form = convolution(graph);
    part made = dnn_part_begin(graph, kind->type);

    join(graph, made, kind->input, input);
    join(graph, made, kind->weight, weight);
    join(graph, made, kind->output, output);
    join(graph, made, kind->convolution, form);
    dnn_part_set(graph, made, kind->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    dnn_part_set(graph, made, kind->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    add(graph, made);
}

/* ---- fused operations ---- */

static part pointwise(struct dnn_graph *graph, cudnnPointwiseMode_t mode)
{
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    part form = dnn_part_begin(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);

    dnn_part_set(graph, form, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    dnn_part_set(graph, form, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    dnn_part_finish(graph, form);
    part made = dnn_part_begin(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    join(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, form);
    return made;
}

/* y = mode(x) or mode(x, b). Return y. */
static part apply(struct dnn_graph *graph, cudnnPointwiseMode_t mode, part x, part b, part y)
{
    part made = pointwise(graph, mode);

    join(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        join(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    join(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add(graph, made);
    return y;
}

/* The same with a tensor in memory; the result is not stored. */
static part apply_tensor(struct dnn_graph *graph, cudnnPointwiseMode_t mode, part x,
                         enum dnn_tensor which, enum dnn_extent extent)
{
    return apply(graph, mode, x, tensor(graph, which), between(graph, extent));
}

/* x * scale + bias, of the preceding BN or of the residual's. */
static part scale(struct dnn_graph *graph, part x, enum dnn_tensor factor, enum dnn_tensor term)
{
    x = apply_tensor(graph, CUDNN_POINTWISE_MUL, x, factor, DNN_IN_PIXELS);
    return apply_tensor(graph, CUDNN_POINTWISE_ADD, x, term, DNN_IN_PIXELS);
}

/* Return what the convolution reads: the input, ReLU of its BN, or ReLU of a sum, which is
 * stored. */
static part prologue(struct dnn_graph *graph)
{
    const uint32_t fusion = graph->shape->fusion;
    part input = tensor(graph, DNN_INPUT);

    if (!(fusion & DNN_PROLOGUE))
        return input;
    input = scale(graph, input, DNN_IN_SCALE, DNN_IN_BIAS);
    if (!(fusion & DNN_SUMMED))
        return apply(graph, CUDNN_POINTWISE_RELU_FWD, input, NULL, between(graph, DNN_IN_PIXELS));
    part residual = tensor(graph, DNN_RESIDUAL);
    if (fusion & DNN_DUAL)
        residual = scale(graph, residual, dnn_beside(DNN_IN_SCALE), dnn_beside(DNN_IN_BIAS));
    input = apply(graph, CUDNN_POINTWISE_ADD, input, residual, between(graph, DNN_IN_PIXELS));
    return apply(graph, CUDNN_POINTWISE_RELU_FWD, input, NULL, tensor(graph, DNN_SUM));
}

static void add_statistics(struct dnn_graph *graph, part output)
{
    const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    part sums = tensor(graph, DNN_SUMS), squares = tensor(graph, DNN_SQUARES);
    part made = dnn_part_begin(graph, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);

    dnn_part_set(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1,
                 &mode);
    dnn_part_set(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
                 &compute);
    join(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, output);
    join(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sums);
    join(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
    add(graph, made);
}

static void build_forward(struct dnn_graph *graph)
{
    static const struct {
        enum dnn_fusion fusion;
        cudnnPointwiseMode_t mode;
        enum dnn_tensor with;
    } links[] = {{DNN_SCALED, CUDNN_POINTWISE_MUL, DNN_SCALE},
                 {DNN_BIASED, CUDNN_POINTWISE_ADD, DNN_BIAS},
                 {DNN_ADDED, CUDNN_POINTWISE_ADD, DNN_OTHER},
                 {DNN_RECTIFIED, CUDNN_POINTWISE_RELU_FWD, DNN_TENSORS},
                 {DNN_RESCALED, CUDNN_POINTWISE_MUL, DNN_LAST}};
    const uint32_t fusion = graph->shape->fusion;
    uint32_t left = fusion & (DNN_SCALED | DNN_BIASED | DNN_ADDED | DNN_RECTIFIED | DNN_RESCALED);
    part input = prologue(graph);
    const cudnnDataType_t sums = graph->shape->int8 ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT;
    part value = left ? between_of(graph, DNN_OUT_PIXELS, sums) : tensor(graph, DNN_OUTPUT);

    add_convolution(graph, input, value);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (!(left & links[i].fusion))
            continue;
        left &= ~(uint32_t)links[i].fusion;
        part with = links[i].with == DNN_TENSORS ? NULL : tensor(graph, links[i].with);
        value = apply(graph, links[i].mode, value, with,
                      left ? between(graph, DNN_OUT_PIXELS) : tensor(graph, DNN_OUTPUT));
    }
    if (fusion & DNN_STATISTICS)
        add_statistics(graph, value);
}

/* A BN in the backward pass: its input, its batch statistics and its output. */
struct norm {
    part x, mean, inverse, gamma, y;
    bool beside;
};

static part norm_tensor(struct dnn_graph *graph, bool beside, enum dnn_tensor which)
{
    return tensor(graph, beside ? dnn_beside(which) : which);
}

static struct norm add_norm(struct dnn_graph *graph, bool beside)
{
    struct norm norm = {.x = tensor(graph, beside ? DNN_RESIDUAL : DNN_X),
                        .mean = norm_tensor(graph, beside, DNN_MEAN),
                        .inverse = norm_tensor(graph, beside, DNN_INVERSE),
                        .gamma = norm_tensor(graph, beside, DNN_GAMMA),
                        .beside = beside};
    part beta = norm_tensor(graph, beside, DNN_BETA);

    norm.y = apply(graph, CUDNN_POINTWISE_SUB, norm.x, norm.mean, between(graph, DNN_IN_PIXELS));
    norm.y = apply(graph, CUDNN_POINTWISE_MUL, norm.y, norm.inverse, between(graph, DNN_IN_PIXELS));
    norm.y = apply(graph, CUDNN_POINTWISE_MUL, norm.y, norm.gamma, between(graph, DNN_IN_PIXELS));
    norm.y = apply(graph, CUDNN_POINTWISE_ADD, norm.y, beta, between(graph, DNN_IN_PIXELS));
    return norm;
}

/* Add the gradients of a BN from dz, the gradient of its output. */
static void add_norm_weights(struct dnn_graph *graph, part dz, const struct norm *norm)
{
    static const struct {
        cudnnBackendAttributeName_t name;
        enum dnn_tensor which;
    } results[] = {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, DNN_D_GAMMA},
                   {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, DNN_D_BETA},
                   {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, DNN_A},
                   {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, DNN_B},
                   {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, DNN_C}};
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    part made = dnn_part_begin(graph, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);

    dnn_part_set(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                 1, &compute);
    join(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dz);
    join(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, norm->x);
    join(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, norm->mean);
    join(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, norm->inverse);
    join(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, norm->gamma);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        join(graph, made, results[i].name, norm_tensor(graph, norm->beside, results[i].which));
    add(graph, made);
}

/* Go back through the convolution and the ReLU before it, whose sign is recomputed, and sum the
 * gradients of the BN preceding it, or of the two BNs of a sum. */
static void build_norm_data(struct dnn_graph *graph)
{
    const uint32_t fusion = graph->shape->fusion;
    part d = between(graph, DNN_IN_PIXELS), dz = tensor(graph, DNN_INPUT);
    struct norm norm, beside = {0};

    add_convolution(graph, d, tensor(graph, DNN_OUTPUT));
    norm = add_norm(graph, false);
    if (fusion & DNN_DUAL)
        beside = add_norm(graph, true);
    else if (fusion & DNN_SUMMED)
        beside.y = tensor(graph, DNN_RESIDUAL);
    part value = norm.y;
    if (fusion & DNN_SUMMED)
        value = apply(graph, CUDNN_POINTWISE_ADD, value, beside.y, between(graph, DNN_IN_PIXELS));
    if (fusion & DNN_ADDED)
        d = apply_tensor(graph, CUDNN_POINTWISE_ADD, d, DNN_OTHER, DNN_IN_PIXELS);
    part back = pointwise(graph, CUDNN_POINTWISE_RELU_BWD);
    join(graph, back, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, d);
    join(graph, back, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, value);
    join(graph, back, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dz);
    add(graph, back);
    add_norm_weights(graph, dz, &norm);
    if (fusion & DNN_DUAL)
        add_norm_weights(graph, dz, &beside);
}

static void build(struct dnn_graph *graph)
{
    switch (graph->shape->kind) {
    case DNN_FORWARD:
        return build_forward(graph);
    case DNN_DATA:
        if (graph->shape->fusion & DNN_NORM)
            return build_norm_data(graph);
        return add_convolution(graph, tensor(graph, DNN_INPUT), tensor(graph, DNN_OUTPUT));
    case DNN_WEIGHT:
        return add_convolution(graph, prologue(graph), tensor(graph, DNN_OUTPUT));
    }
}

int dnn_graph_make(struct dnn_graph *graph, cudnnHandle_t handle, const struct dnn_shape *shape)
{
    *graph = (struct dnn_graph){.shape = shape};
    build(graph);
    graph->whole = dnn_part_begin(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    dnn_part_set(graph, graph->whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 graph->operation_count, graph->operations);
    if (handle)
        dnn_part_set(graph, graph->whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                     &handle);
    dnn_part_finish(graph, graph->whole);
    return graph->code;
}

void dnn_graph_destroy(struct dnn_graph *graph)
{
    while (graph->part_count > 0)
        dnn_destroy(graph->parts[--graph->part_count]);
}
