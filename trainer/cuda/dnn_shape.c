/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/dnn_shape.h"

/* The size of each tensor, and the fusions that must all be present for it. */
static const struct row {
    enum dnn_extent extent;
    uint32_t fusion;
} rows[DNN_BESIDE] = {
    [DNN_INPUT] = {DNN_IN_PIXELS, 0},
    [DNN_WEIGHTS] = {DNN_FILTER, 0},
    [DNN_OUTPUT] = {DNN_OUT_PIXELS, 0},
    [DNN_SUMS] = {DNN_OUT_CHANNELS, DNN_STATISTICS},
    [DNN_SQUARES] = {DNN_OUT_CHANNELS, DNN_STATISTICS},
    [DNN_SCALE] = {DNN_OUT_CHANNELS, DNN_SCALED},
    [DNN_BIAS] = {DNN_OUT_CHANNELS, DNN_BIASED},
    [DNN_OTHER] = {DNN_OUT_PIXELS, DNN_ADDED}, /* the input's pixels if d_input is the output */
    [DNN_LAST] = {DNN_OUT_CHANNELS, DNN_RESCALED},
    [DNN_X] = {DNN_IN_PIXELS, DNN_NORM},
    [DNN_RESIDUAL] = {DNN_IN_PIXELS, DNN_SUMMED},
    [DNN_SUM] = {DNN_IN_PIXELS, DNN_PROLOGUE | DNN_SUMMED},
    [DNN_IN_SCALE] = {DNN_IN_CHANNELS, DNN_PROLOGUE},
    [DNN_IN_BIAS] = {DNN_IN_CHANNELS, DNN_PROLOGUE},
    [DNN_MEAN] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_INVERSE] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_GAMMA] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_BETA] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_D_GAMMA] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_D_BETA] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_A] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_B] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_C] = {DNN_IN_CHANNELS, DNN_NORM},
};

static bool is_beside(enum dnn_tensor which)
{
    return which >= DNN_BESIDE;
}

/* For a tensor of the residual's BN, return its counterpart of the preceding BN. */
static enum dnn_tensor twin_of(enum dnn_tensor which)
{
    return is_beside(which) ? (enum dnn_tensor)(which - (DNN_BESIDE - DNN_IN_SCALE)) : which;
}

bool dnn_takes(const struct dnn_shape *shape, enum dnn_tensor which)
{
    const uint32_t fusion = rows[twin_of(which)].fusion | (is_beside(which) ? DNN_DUAL : 0);

    return (shape->fusion & fusion) == fusion;
}

bool dnn_writes(const struct dnn_shape *shape, enum dnn_tensor which)
{
    switch (shape->kind) {
    case DNN_FORWARD:
        return which == DNN_OUTPUT || which == DNN_SUMS || which == DNN_SQUARES || which == DNN_SUM;
    case DNN_WEIGHT:
        return which == DNN_WEIGHTS;
    case DNN_DATA:
        break;
    }
    return which == DNN_INPUT || twin_of(which) >= DNN_D_GAMMA;
}

enum dnn_extent dnn_extent(const struct dnn_shape *shape, enum dnn_tensor which)
{
    return which == DNN_OTHER && shape->kind == DNN_DATA ? DNN_IN_PIXELS
                                                         : rows[twin_of(which)].extent;
}

/* Numbers per channel are FP32, except those of a prologue, which cuDNN takes in the tensors' own
 * type. */
enum device_type dnn_type(const struct dnn_shape *shape, enum dnn_tensor which)
{
    const bool tensor = dnn_extent(shape, which) < DNN_IN_CHANNELS;
    const enum dnn_tensor twin = twin_of(which);

    if (tensor && (which == DNN_OUTPUT ? shape->int8_output : shape->int8))
        return DEVICE_INT8;
    return tensor || twin == DNN_IN_SCALE || twin == DNN_IN_BIAS ? shape->type : DEVICE_FP32;
}

void dnn_dims(const struct dnn_shape *shape, enum dnn_extent extent, int64_t dims[4])
{
    const struct kernel_window *w = &shape->window;
    const int64_t all[][4] = {
        [DNN_IN_PIXELS] = {w->images, w->in_channels, w->in_height, w->in_width},
        [DNN_OUT_PIXELS] = {w->images, w->out_channels, w->out_height, w->out_width},
        [DNN_FILTER] = {w->out_channels, w->in_channels / w->groups, w->height, w->width},
        [DNN_IN_CHANNELS] = {1, w->in_channels, 1, 1},
        [DNN_OUT_CHANNELS] = {1, w->out_channels, 1, 1}};

    for (int i = 0; i < 4; i++)
        dims[i] = all[extent][i];
}

uint64_t dnn_count(const struct dnn_shape *shape, enum dnn_tensor which)
{
    int64_t dims[4];

    dnn_dims(shape, dnn_extent(shape, which), dims);
    return (uint64_t)(dims[0] * dims[1] * dims[2] * dims[3]);
}

uint64_t dnn_tensor_bytes(const struct dnn_shape *shape, enum dnn_tensor which)
{
    return dnn_count(shape, which) * device_type_bytes(dnn_type(shape, which));
}
