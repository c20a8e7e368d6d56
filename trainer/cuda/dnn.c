/* SPDX-License-Identifier: Apache-2.0
 *
 * A shape is a graph of cuDNN's operations. cuDNN has engines for the forms below, but none for
 * equivalent ones: BN before a ReLU in the backward pass is (x - mean) * inverse * gamma + beta.
 *
 * Autotuning: the engines that support a shape run on data of its size, and the fastest is kept
 * whose numbers are right. The file of plans is keyed by what determines the fastest: versions of
 * cuDNN and driver, GPU and shape. A plan from the file is checked like a new one.
 */
#include "trainer/cuda/dnn.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 400 };

typedef cudnnBackendDescriptor_t part;

/* NULL: does nothing. */
static void dnn_destroy(part descriptor)
{
    if (descriptor)
        cudnnBackendDestroyDescriptor(descriptor);
}

enum { DNN_OPERATIONS_MAX = 16, DNN_PARTS_MAX = 96 };

/* A tensor's id in the graph. */
static int64_t dnn_uid(enum dnn_tensor which)
{
    return (int64_t)which + 1;
}

struct dnn_graph {
    const struct dnn_shape *shape; /* while the graph is built */
    part operations[DNN_OPERATIONS_MAX];
    uint32_t operation_count;
    part whole;                     /* the finished graph */
    part parts[DNN_PARTS_MAX + 34]; /* including those of a choice */
    uint32_t part_count;
    int code; /* first error */
};

enum { TENSOR_ALIGNMENT = 16 };

/* ---- descriptors ---- */

static int dnn_check(cudnnStatus_t status, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return 0;
    char more[256] = "";
    cudnnGetLastErrorString(more, sizeof more);
    /* 3000 to 3999: not supported */
    return fail(status >= CUDNN_STATUS_NOT_SUPPORTED && status < 4000 ? ENOTSUP : EIO,
                "backend cuda: cuDNN: %s: %s %s", what, cudnnGetErrorString(status), more);
}

static void dnn_set(cudnnStatus_t *status, part made, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (!*status)
        *status = cudnnBackendSetAttribute(made, name, type, count, values);
}

static void dnn_get(cudnnStatus_t *status, part from, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, void *value)
{
    int64_t count = 0;

    if (!*status)
        *status = cudnnBackendGetAttribute(from, name, type, 1, &count, value);
}

static part begin(struct dnn_graph *graph, cudnnBackendDescriptorType_t type)
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

static void set(struct dnn_graph *graph, part made, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (graph->code == 0)
        graph->code = dnn_check(cudnnBackendSetAttribute(made, name, type, count, values),
                                "describe a convolution");
}

static void finish(struct dnn_graph *graph, part made)
{
    if (graph->code == 0)
        graph->code = dnn_check(cudnnBackendFinalize(made), "describe a convolution");
}

/* Set an attribute to another descriptor. */
static void link_part(struct dnn_graph *graph, part made, cudnnBackendAttributeName_t name,
                      part other)
{
    set(graph, made, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

/* ---- tensors ---- */

/* Add an NHWC tensor. */
static part add_tensor(struct dnn_graph *graph, enum dnn_extent extent, cudnnDataType_t numbers,
                       int64_t id, bool stored)
{
    const int64_t alignment = TENSOR_ALIGNMENT;
    const bool is_virtual = !stored;
    int64_t dims[4];
    part made = begin(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

    dnn_dims(graph->shape, extent, dims);
    const int64_t strides[] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &numbers);
    set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (is_virtual)
        set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    finish(graph, made);
    return made;
}

/* A tensor in memory. */
static part tensor(struct dnn_graph *graph, enum dnn_tensor which)
{
    static const cudnnDataType_t types[] = {[DEVICE_FP32] = CUDNN_DATA_FLOAT,
                                            [DEVICE_FP16] = CUDNN_DATA_HALF,
                                            [DEVICE_BF16] = CUDNN_DATA_BFLOAT16,
                                            [DEVICE_INT8] = CUDNN_DATA_INT8};

    return add_tensor(graph, dnn_extent(graph->shape, which), types[dnn_type(graph->shape, which)],
                      dnn_uid(which), true);
}

/* A tensor between two operations, never stored. */
static part intermediate(struct dnn_graph *graph, enum dnn_extent extent, cudnnDataType_t numbers)
{
    return add_tensor(graph, extent, numbers, dnn_uid(DNN_TENSORS) + graph->part_count, false);
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
    part made = begin(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

    set(graph, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    finish(graph, made);
    return made;
}

/* The attributes of the three kinds have the same meaning and different numbers. */
static const struct operation_kind {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, convolution, input, weight, output;
} operation_kinds[] = {
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

static void add_operation(struct dnn_graph *graph, part operation)
{
    finish(graph, operation);
    if (graph->code)
        return;
    assert(graph->operation_count < DNN_OPERATIONS_MAX);
    graph->operations[graph->operation_count++] = operation;
}

static void add_convolution(struct dnn_graph *graph, part input, part output)
{
    const struct operation_kind *kind = &operation_kinds[graph->shape->kind];
    const float one = 1, zero = 0;
    part weight = tensor(graph, DNN_WEIGHTS), form = convolution(graph);
    part made = begin(graph, kind->type);

    link_part(graph, made, kind->input, input);
    link_part(graph, made, kind->weight, weight);
    link_part(graph, made, kind->output, output);
    link_part(graph, made, kind->convolution, form);
    set(graph, made, kind->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(graph, made, kind->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    add_operation(graph, made);
}

/* ---- fused operations ---- */

static part pointwise(struct dnn_graph *graph, cudnnPointwiseMode_t mode)
{
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    part form = begin(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);

    set(graph, form, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(graph, form, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    finish(graph, form);
    part made = begin(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    link_part(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, form);
    return made;
}

/* y = mode(x) or mode(x, b). Return y. */
static part apply(struct dnn_graph *graph, cudnnPointwiseMode_t mode, part x, part b, part y)
{
    part made = pointwise(graph, mode);

    link_part(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        link_part(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    link_part(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_operation(graph, made);
    return y;
}

/* The same for the input's pixels; the result is not stored. */
static part apply_inside(struct dnn_graph *graph, cudnnPointwiseMode_t mode, part x, part b)
{
    return apply(graph, mode, x, b, intermediate(graph, DNN_IN_PIXELS, CUDNN_DATA_FLOAT));
}

/* x * scale + bias, of the preceding BN or of the residual's. */
static part scale(struct dnn_graph *graph, part x, enum dnn_tensor factor, enum dnn_tensor term)
{
    x = apply_inside(graph, CUDNN_POINTWISE_MUL, x, tensor(graph, factor));
    return apply_inside(graph, CUDNN_POINTWISE_ADD, x, tensor(graph, term));
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
        return apply_inside(graph, CUDNN_POINTWISE_RELU_FWD, input, NULL);
    part residual = tensor(graph, DNN_RESIDUAL);
    if (fusion & DNN_DUAL)
        residual = scale(graph, residual, dnn_beside(DNN_IN_SCALE), dnn_beside(DNN_IN_BIAS));
    input = apply_inside(graph, CUDNN_POINTWISE_ADD, input, residual);
    return apply(graph, CUDNN_POINTWISE_RELU_FWD, input, NULL, tensor(graph, DNN_SUM));
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
    part value = left ? intermediate(graph, DNN_OUT_PIXELS, sums) : tensor(graph, DNN_OUTPUT);

    add_convolution(graph, input, value);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (!(left & links[i].fusion))
            continue;
        left &= ~(uint32_t)links[i].fusion;
        part with = links[i].with == DNN_TENSORS ? NULL : tensor(graph, links[i].with);
        value = apply(graph, links[i].mode, value, with,
                      left ? intermediate(graph, DNN_OUT_PIXELS, CUDNN_DATA_FLOAT)
                           : tensor(graph, DNN_OUTPUT));
    }
    if (!(fusion & DNN_STATISTICS))
        return;
    const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    part totals = tensor(graph, DNN_SUMS), squares = tensor(graph, DNN_SQUARES);
    part made = begin(graph, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    set(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
    set(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    link_part(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, value);
    link_part(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, totals);
    link_part(graph, made, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
    add_operation(graph, made);
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

    norm.y = apply_inside(graph, CUDNN_POINTWISE_SUB, norm.x, norm.mean);
    norm.y = apply_inside(graph, CUDNN_POINTWISE_MUL, norm.y, norm.inverse);
    norm.y = apply_inside(graph, CUDNN_POINTWISE_MUL, norm.y, norm.gamma);
    norm.y = apply_inside(graph, CUDNN_POINTWISE_ADD, norm.y, beta);
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
    part made = begin(graph, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);

    set(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
        &compute);
    link_part(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dz);
    link_part(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, norm->x);
    link_part(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, norm->mean);
    link_part(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, norm->inverse);
    link_part(graph, made, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, norm->gamma);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        link_part(graph, made, results[i].name, norm_tensor(graph, norm->beside, results[i].which));
    add_operation(graph, made);
}

/* Go back through the convolution and the ReLU before it, whose sign is recomputed, and sum the
 * gradients of the BN preceding it, or of the two BNs of a sum. */
static void build_norm_data(struct dnn_graph *graph)
{
    const uint32_t fusion = graph->shape->fusion;
    part d = intermediate(graph, DNN_IN_PIXELS, CUDNN_DATA_FLOAT), dz = tensor(graph, DNN_INPUT);
    struct norm norm, beside = {0};

    add_convolution(graph, d, tensor(graph, DNN_OUTPUT));
    norm = add_norm(graph, false);
    if (fusion & DNN_DUAL)
        beside = add_norm(graph, true);
    else if (fusion & DNN_SUMMED)
        beside.y = tensor(graph, DNN_RESIDUAL);
    part value = norm.y;
    if (fusion & DNN_SUMMED)
        value = apply_inside(graph, CUDNN_POINTWISE_ADD, value, beside.y);
    if (fusion & DNN_ADDED)
        d = apply_inside(graph, CUDNN_POINTWISE_ADD, d, tensor(graph, DNN_OTHER));
    part back = pointwise(graph, CUDNN_POINTWISE_RELU_BWD);
    link_part(graph, back, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, d);
    link_part(graph, back, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, value);
    link_part(graph, back, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dz);
    add_operation(graph, back);
    add_norm_weights(graph, dz, &norm);
    if (fusion & DNN_DUAL)
        add_norm_weights(graph, dz, &beside);
}

/* handle: NULL for a described device. */
static int dnn_graph_make(struct dnn_graph *graph, cudnnHandle_t handle,
                          const struct dnn_shape *shape)
{
    *graph = (struct dnn_graph){.shape = shape};
    if (shape->kind == DNN_FORWARD)
        build_forward(graph);
    else if (shape->kind == DNN_DATA && shape->fusion & DNN_NORM)
        build_norm_data(graph);
    else
        add_convolution(graph,
                        shape->kind == DNN_WEIGHT ? prologue(graph) : tensor(graph, DNN_INPUT),
                        tensor(graph, DNN_OUTPUT));
    graph->whole = begin(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, graph->whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        graph->operation_count, graph->operations);
    if (handle)
        set(graph, graph->whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finish(graph, graph->whole);
    return graph->code;
}

static void dnn_graph_destroy(struct dnn_graph *graph)
{
    while (graph->part_count > 0)
        dnn_destroy(graph->parts[--graph->part_count]);
}

/* ---- plans ---- */

static const uint32_t of_norms = DNN_PROLOGUE | DNN_STATISTICS | DNN_NORM;
static const uint64_t workspace_limit_bytes = 4ull << 30;
static const uint64_t making_ns = 3000000000; /* limit for making one shape's plans */

struct dnn_found {
    struct dnn_plan known; /* first member */
    struct dnn_found *next;
    char key[KEY_BYTES];
    struct dnn_shape shape;
    part plan; /* NULL: no engine supports the shape */
};

struct dnn {
    struct dnn_config config;
    cudnnHandle_t handle;
    part described;
    struct dnn_found *plans;
    json_t *kept; /* from the file, and new ones */
    bool changed;
    char *file;                  /* of plans; NULL: none */
    char wrong[DNN_WRONG_BYTES]; /* see dnn_take_wrong() */
};

/* ---- absent devices ---- */

/* As NVIDIA's tools report them. */
static const struct described_device {
    const char *name;
    uint32_t capability;
    int processors, clock_khz, memory_khz, l2_bytes, shared_bytes;
    long long memory_bytes;
} described_devices[] = {
    {"NVIDIA H200", 90, 132, 1980000, 3201000, 62914560, 232448, 150754820096},
    {"NVIDIA H100 80GB HBM3", 90, 132, 1980000, 2619000, 52428800, 232448, 85028765696},
    {"NVIDIA A100-SXM4-80GB", 80, 108, 1410000, 1593000, 41943040, 166912, 85097971712},
};

/* ---- opening ---- */

int dnn_open(struct dnn **made, const struct dnn_config *config)
{
    const size_t count = sizeof described_devices / sizeof *described_devices;
    const struct described_device *like = described_devices;
    const char *wanted = config->described_part;
    struct dnn *dnn = *made = memory_zeroed(sizeof *dnn);
    char name[32], text[2048];

    if (!dnn)
        return -ENOMEM;
    /* cuDNN loads the run-time compiler for each engine it considers and unloads it again: 100 MB
     * mapped and relocated a thousand times for one network. Holding it once avoids that; if it is
     * not found, cuDNN reports what is missing. */
    snprintf(name, sizeof name, "libnvrtc.so.%zu", cudnnGetCudartVersion() / 1000);
    dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    dnn->config = *config;
    dnn->file = config->plans ? strdup(config->plans) : NULL;
    dnn->kept = dnn_choices_read(config->plans);
    if (!dnn->kept || (config->plans && !dnn->file))
        return -ENOMEM;
    if (config->runtime) {
        int code = dnn_check(cudnnCreate(&dnn->handle), "start");
        return code ? code
                    : dnn_check(cudnnSetStream(dnn->handle, config->runtime->stream),
                                "take a stream");
    }
    while (like < described_devices + count - 1 &&
           (like->capability > config->described || (wanted && !strstr(like->name, wanted))))
        like++;
    int bytes = snprintf(
        text, sizeof text,
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"smClockRateKHz\":%d,"
        "\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"warpSize\":32,"
        "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
        "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,"
        "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
        "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"deviceVer\":%u,\"driverVer\":13000,"
        "\"deviceName\":\"%s\",\"cudaDeviceId\":0,\"totalGlobalMem\":%lld}",
        like->processors, like->clock_khz, like->memory_khz, like->l2_bytes, like->shared_bytes,
        config->described * 10, like->name, like->memory_bytes);
    assert(bytes > 0 && (size_t)bytes < sizeof text);
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &dnn->described);
    dnn_set(&status, dnn->described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
            bytes, text);
    if (!status)
        status = cudnnBackendFinalize(dnn->described);
    return dnn_check(status, "describe a device");
}

void dnn_close(struct dnn *dnn)
{
    if (!dnn)
        return;
    while (dnn->plans) {
        struct dnn_found *next = dnn->plans->next;
        dnn_destroy(dnn->plans->plan);
        free(dnn->plans);
        dnn->plans = next;
    }
    dnn_destroy(dnn->described);
    if (dnn->handle)
        cudnnDestroy(dnn->handle);
    json_decref(dnn->kept);
    free(dnn->file);
    free(dnn);
}

/* ---- names ---- */

void dnn_name_library(char *text, size_t bytes)
{
    const size_t version = cudnnGetVersion();

    snprintf(text, bytes, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

static void name_shape(const struct dnn *dnn, const struct dnn_shape *shape, char key[KEY_BYTES])
{
    static const char *const kinds[] = {"forward", "data", "weight"};
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    static const char *const parts[] = {"prologue", "statistics", "scale", "bias",    "add",
                                        "relu",     "norm",       "sum",   "rescale", "dual"};
    const struct kernel_window *w = &shape->window;
    const struct runtime *runtime = dnn->config.runtime;
    char fusions[80] = "";

    for (size_t i = 0, end = 0; i < sizeof parts / sizeof *parts; i++)
        if (shape->fusion >> i & 1)
            end += (size_t)snprintf(fusions + end, sizeof fusions - end, ", %s", parts[i]);
    snprintf(
        key, KEY_BYTES,
        "cudnn %zu, driver %u, %s sm_%u x %u%s, best of %u; %s %s%s batch %u, %u x %u x %u by "
        "%u x %u / %u + %u,%u in %u to %u x %u x %u%s",
        cudnnGetVersion(), runtime ? runtime->driver : 0, runtime ? runtime->name : "described",
        runtime ? runtime->capability : dnn->config.described,
        runtime ? runtime->multiprocessors : 0, dnn->config.deterministic ? "" : " any",
        dnn->config.tournament, kinds[shape->kind], shape->int8 ? "int8 to " : "",
        shape->int8_output ? "int8"
        : shape->tf32      ? "tf32"
                           : types[shape->type],
        w->images, w->in_channels, w->in_height, w->in_width, w->height, w->width, w->stride,
        w->pad_top, w->pad_left, w->groups, w->out_channels, w->out_height, w->out_width, fusions);
}

/* ---- running ---- */

static int execute(const struct dnn *dnn, const struct dnn_shape *shape, part plan,
                   const struct dnn_tensors *tensors)
{
    int64_t ids[DNN_TENSORS], count = 0;
    void *places[DNN_TENSORS];
    part pack = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);

    for (enum dnn_tensor i = 0; i < DNN_TENSORS; i++)
        if (dnn_takes(shape, i)) {
            ids[count] = dnn_uid(i);
            places[count++] = tensors->at[i];
        }
    dnn_set(&status, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    dnn_set(&status, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
            places);
    dnn_set(&status, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
            &tensors->workspace);
    if (!status)
        status = cudnnBackendFinalize(pack);
    if (!status)
        status = cudnnBackendExecute(dnn->handle, plan, pack);
    dnn_destroy(pack);
    return dnn_check(status, "compute a convolution");
}

int dnn_run(const struct dnn *dnn, const struct dnn_plan *plan, const struct dnn_tensors *tensors)
{
    const struct dnn_found *found = (const struct dnn_found *)plan;

    return execute(dnn, &found->shape, found->plan, tensors);
}

/* ---- engines and plans ---- */

/* Return whether an engine has the requested precision and determinism. */
static bool fits(part config, const struct dnn_shape *shape, bool deterministic)
{
    part engine = NULL;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0, note_count = 0;
    bool fit = true;

    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine))
        return false;
    if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &count, &engine) ||
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                 &note_count, notes))
        fit = false;
    const bool low = shape->type != DEVICE_FP32 || shape->tf32 || shape->int8;
    const bool allowed[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {
        [CUDNN_NUMERICAL_NOTE_TENSOR_CORE] = low, /* with FP32 tensors: TF32 */
        [CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS] = low,
        /* partial sums in FP16 or BF16: dnn_trial.c says whether they are right */
        [CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION] = shape->type != DEVICE_FP32,
        [CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC] = !deterministic,
        [CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP] = true};
    for (int64_t i = 0; i < note_count && fit; i++)
        fit = notes[i] < CUDNN_NUMERICAL_NOTE_TYPE_COUNT && allowed[notes[i]];
    dnn_destroy(engine);
    return fit;
}

/* Find engine configurations for the shape: of its precision only, and deterministic if wanted;
 * cuDNN's favourites, likely fastest first, or its fallbacks. Destroy each of the `count`. -ENOTSUP
 * if there is none. */
static int find_engines(const struct dnn *dnn, const struct dnn_graph *graph,
                        const struct dnn_shape *shape, bool favourites,
                        part configs[DNN_CONFIGS_MAX], uint32_t *count)
{
    const cudnnBackendHeurMode_t mode = favourites ? CUDNN_HEUR_MODE_A : CUDNN_HEUR_MODE_FALLBACK;
    part heuristic = NULL;
    int64_t made = 0, found = 0;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic);

    *count = 0;
    dnn_set(&status, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->whole);
    dnn_set(&status, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (dnn->described)
        dnn_set(&status, heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1, &dnn->described);
    if (!status)
        status = cudnnBackendFinalize(heuristic);
    while (!status && made < DNN_CONFIGS_MAX) {
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[made]);
        made += !status;
    }
    if (!status)
        status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, DNN_CONFIGS_MAX, &found,
                                          configs);
    for (int64_t i = 0; i < made; i++)
        if (!status && i < found && fits(configs[i], shape, dnn->config.deterministic))
            configs[(*count)++] = configs[i];
        else
            dnn_destroy(configs[i]);
    dnn_destroy(heuristic);
    int code = dnn_check(status, "ask for engines");
    return *count > 0 ? 0 : code ? code : fail(ENOTSUP, "backend cuda: cuDNN has no engine");
}

static int make_plan(const struct dnn *dnn, part config, part *plan)
{
    part made = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &made);

    if (dnn->handle)
        dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                &dnn->handle);
    if (dnn->described)
        dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1, &dnn->described);
    dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            1, &config);
    if (!status)
        status = cudnnBackendFinalize(made);
    if (status)
        dnn_destroy(made);
    *plan = status ? NULL : made;
    return dnn_check(status, "finish a plan");
}

static int plan_workspace(part plan, uint64_t *bytes)
{
    int64_t wanted = 0, count = 0;
    int code = dnn_check(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                  CUDNN_TYPE_INT64, 1, &count, &wanted),
                         "ask for a plan's workspace");

    *bytes = (uint64_t)wanted;
    return code;
}

/* ---- the parts of a plan, from which it can be remade ---- */

static int take_choice(part plan, struct dnn_choice *choice)
{
    part config = NULL, engine = NULL, knobs[DNN_KNOBS_MAX] = {0};
    int64_t count = 0;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config);

    *choice = (struct dnn_choice){0};
    if (!status)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    dnn_get(&status, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            &config);
    dnn_get(&status, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &engine);
    dnn_get(&status, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &choice->engine);
    int code = dnn_check(status, "ask for a plan's engine");
    for (int i = 0; i < DNN_KNOBS_MAX && !status; i++)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[i]);
    if (!status)
        status =
            cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, DNN_KNOBS_MAX, &count, knobs);
    for (int64_t i = 0; i < count && i < DNN_KNOBS_MAX && !status; i++) {
        int64_t value = 0;
        cudnnBackendKnobType_t type;
        dnn_get(&status, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, &type);
        dnn_get(&status, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, &value);
        if (!status)
            choice->knobs[choice->knob_count++] = (struct dnn_knob){(int32_t)type, value};
    }
    if (code == 0)
        code = dnn_check(status, "ask for knobs");
    for (int i = 0; i < DNN_KNOBS_MAX; i++)
        dnn_destroy(knobs[i]);
    dnn_destroy(engine);
    dnn_destroy(config);
    return code ? code : count > DNN_KNOBS_MAX ? fail(ENOTSUP, "a plan has too many knobs") : 0;
}

/* Make the configuration of a choice for this graph, which owns it. Fails if there is none or it
 * does not compute what the shape requires: whatever the source of the choice, the graph is what is
 * computed. */
static int remake_config(const struct dnn *dnn, struct dnn_graph *graph,
                         const struct dnn_shape *shape, const struct dnn_choice *choice,
                         part *config)
{
    part knobs[DNN_KNOBS_MAX];

    for (uint32_t i = 0; i < choice->knob_count; i++)
        if (choice->knobs[i].type >= CUDNN_KNOB_TYPE_COUNTS)
            return graph->code = fail(ENOTSUP, "a kept plan has a knob unknown to cuDNN");
    part engine = begin(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    set(graph, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
        &graph->whole);
    set(graph, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &choice->engine);
    if (dnn->described)
        set(graph, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &dnn->described);
    finish(graph, engine);
    for (uint32_t i = 0; i < choice->knob_count; i++) {
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)choice->knobs[i].type;
        knobs[i] = begin(graph, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        set(graph, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        set(graph, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
            &choice->knobs[i].value);
        finish(graph, knobs[i]);
    }
    *config = begin(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    set(graph, *config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    if (choice->knob_count > 0)
        set(graph, *config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            choice->knob_count, knobs);
    finish(graph, *config);
    if (graph->code == 0 && !fits(*config, shape, dnn->config.deterministic))
        graph->code = fail(ENOTSUP, "a kept plan does not compute what the shape asks for");
    return graph->code;
}

/* ---- autotuning ---- */

/* Plans for one shape that compete. */
struct rivals {
    const struct dnn *dnn;
    const struct dnn_shape *shape;
    part *plans;
};

static int start_rival(const void *context, uint32_t which, const struct dnn_tensors *tensors)
{
    const struct rivals *rivals = context;

    return execute(rivals->dnn, rivals->shape, rivals->plans[which], tensors);
}

/* Move the fastest plan that computes the right numbers to the front. */
static int compete(struct dnn *dnn, const struct dnn_shape *shape, part *plans, uint32_t count,
                   bool timed, struct dnn_found *winner)
{
    const struct rivals rivals = {dnn, shape, plans};
    const struct dnn_candidates candidates = {start_rival, &rivals, count, timed,
                                              dnn->config.deterministic};
    struct dnn_trial trial;
    char wrong[DNN_WRONG_BYTES] = "";
    uint64_t most = 0;
    uint32_t chosen = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        plan_workspace(plans[i], &bytes);
        most = bytes > most ? bytes : most;
    }
    int code = dnn_trial_open(&trial, dnn->config.runtime, shape, most);
    if (code == 0)
        code = dnn_trial_choose(&trial, &candidates, &chosen, &winner->known.milliseconds, wrong);
    dnn_trial_close(&trial);
    if (wrong[0] && !dnn->wrong[0])
        snprintf(dnn->wrong, sizeof dnn->wrong, "%s", wrong);
    part best = plans[chosen];
    plans[chosen] = plans[0];
    plans[0] = best;
    return code;
}

/* Choose the fastest of cuDNN's favourites or of its fallbacks, of the first that make a plan with
 * an acceptable workspace. Some engines compile for seconds: a shape gets only as many as fit into
 * its time limit. A plan that does not run, or computes something else, is not used. */
static int choose_among(struct dnn *dnn, const struct dnn_graph *graph, bool favourites,
                        struct dnn_found *plan)
{
    part configs[DNN_CONFIGS_MAX], plans[DNN_CONFIGS_MAX];
    /* without a device nothing is timed: take the first */
    const uint32_t most = dnn->handle ? dnn->config.tournament : 1;
    const uint64_t start_ns = clock_now_ns();
    uint32_t config_count = 0, count = 0;
    int code = find_engines(dnn, graph, &plan->shape, favourites, configs, &config_count);

    for (uint32_t i = 0; i < config_count; i++) {
        uint64_t bytes = 0;
        part made = NULL;
        if (count < most && (count == 0 || clock_now_ns() - start_ns < making_ns))
            make_plan(dnn, configs[i], &made);
        if (made && (plan_workspace(made, &bytes) || bytes > workspace_limit_bytes))
            dnn_destroy(made);
        else if (made)
            plans[count++] = made;
        dnn_destroy(configs[i]);
    }
    if (code || count == 0)
        return code ? code : fail(ENOTSUP, "backend cuda: no cuDNN engine makes a plan");
    if (dnn->config.runtime)
        code = compete(dnn, &plan->shape, plans, count, dnn->config.tournament > 1, plan);
    plan->plan = code ? NULL : plans[0];
    plan->known.candidates = count;
    for (uint32_t i = code ? 0 : 1; i < count; i++)
        dnn_destroy(plans[i]);
    return code;
}

/* ---- choices on disk ---- */

/* Remake this shape's plan from the file. Returns whether it can be used; *code is not 0 if memory
 * ran out. */
static bool recall(struct dnn *dnn, const struct dnn_shape *shape, struct dnn_found *plan,
                   int *code)
{
    struct dnn_choice choice;
    struct dnn_graph graph;
    part config = NULL;

    if (!dnn_choices_get(dnn->kept, plan->key, &choice, &plan->known.candidates,
                         &plan->known.milliseconds))
        return false;
    plan->known.engine = choice.engine;
    int failed = dnn_graph_make(&graph, dnn->handle, shape);
    if (failed == 0)
        failed = remake_config(dnn, &graph, shape, &choice, &config);
    if (failed == 0)
        failed = make_plan(dnn, config, &plan->plan);
    dnn_graph_destroy(&graph);
    if (failed == 0 && (plan_workspace(plan->plan, &plan->known.workspace_bytes) ||
                        plan->known.workspace_bytes > workspace_limit_bytes))
        failed = -ENOTSUP;
    if (failed == 0 && dnn->config.runtime)
        failed = compete(dnn, shape, &plan->plan, 1, false, plan);
    *code = failed == -ENOMEM ? failed : 0;
    if (failed) {
        dnn_destroy(plan->plan);
        plan->plan = NULL;
    }
    if (failed && *code == 0) { /* else each start would try it again, if no engine is better */
        *code = dnn_choices_drop(dnn->kept, plan->key);
        dnn->changed = true;
    }
    return failed == 0;
}

int dnn_keep(struct dnn *dnn)
{
    int code = dnn->changed && dnn->file ? dnn_choices_write(dnn->kept, dnn->file) : 0;

    dnn->changed = dnn->changed && code != 0;
    return code;
}

/* ---- finding ---- */

bool dnn_take_wrong(struct dnn *dnn, char wrong[DNN_WRONG_BYTES])
{
    memcpy(wrong, dnn->wrong, sizeof dnn->wrong);
    dnn->wrong[0] = '\0';
    return wrong[0] != '\0';
}

const struct dnn_plan *dnn_find(struct dnn *dnn, const struct dnn_shape *shape, int *code)
{
    char key[KEY_BYTES];
    struct dnn_found *plan;

    if (shape->type != DEVICE_FP16 && (shape->fusion & of_norms)) {
        *code = fail(ENOTSUP, "backend cuda: cuDNN fuses BN in FP16 only");
        return NULL; /* cuDNN would also refuse, but later */
    }
    name_shape(dnn, shape, key);
    for (plan = dnn->plans; plan; plan = plan->next)
        if (strcmp(plan->key, key) == 0)
            break;
    *code = 0;
    if (!plan) {
        plan = memory_zeroed(sizeof *plan);
        *code = plan ? 0 : -ENOMEM;
        if (*code)
            return NULL;
        memcpy(plan->key, key, sizeof key);
        plan->shape = *shape;
        plan->next = dnn->plans;
        dnn->plans = plan;
        if (!recall(dnn, shape, plan, code) && *code == 0) {
            struct dnn_graph graph;
            struct dnn_choice choice;
            *code = dnn_graph_make(&graph, dnn->handle, shape);
            if (*code == 0) {
                *code = choose_among(dnn, &graph, true, plan);
                if (*code && *code != -ENOMEM)
                    *code = choose_among(dnn, &graph, false, plan);
            }
            dnn_graph_destroy(&graph);
            if (*code && *code != -ENOMEM && shape->fusion)
                *code = -ENOTSUP; /* the unfused steps remain */
            if (*code == 0) {
                *code = take_choice(plan->plan, &choice);
                plan->known.engine = *code ? -1 : choice.engine;
                if (*code == 0)
                    *code = dnn_choices_put(dnn->kept, key, &choice, plan->known.candidates,
                                            plan->known.milliseconds);
                dnn->changed = dnn->changed || *code == 0;
            }
            if (dnn->handle)   /* an interrupted first start resumes here */
                dnn_keep(dnn); /* write errors are reported at the end */
        }
        if (*code == 0)
            *code = plan_workspace(plan->plan, &plan->known.workspace_bytes);
    }
    if (*code == 0 && !plan->plan)
        *code = fail(ENOTSUP, "backend cuda: cuDNN has no engine");
    return *code ? NULL : &plan->known;
}
