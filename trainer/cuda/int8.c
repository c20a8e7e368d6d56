/* SPDX-License-Identifier: Apache-2.0
 * INT8 inference: convolutions, and conversions where an output is held in INT8. */
#include "trainer/cuda/build.h"

static void add_conversion(struct cuda_builder *builder, const struct cuda_kernel *kernel,
                           uint32_t node, uint32_t from, uint32_t to)
{
    struct cuda_step step = cuda_step_of(kernel, node);

    step.quantise.type = builder->model->type;
    step.quantise.count = cuda_numbers_of(builder, node);
    step.quantise.step = builder->model->quantised[node].step;
    cuda_reads(&step, &step.quantise.from, from);
    cuda_writes(&step, &step.quantise.to, to);
    cuda_add_step(builder, &step);
}

uint32_t cuda_input(struct cuda_builder *builder, const struct cuda_block *block, uint32_t n)
{
    struct cuda_value *value = n < block->input_count ? &builder->values[block->inputs[n]] : NULL;

    if (value && value->buffer == CUDA_NONE && value->int8 != CUDA_NONE) {
        value->buffer = cuda_add_tensor(builder, value->int8_node);
        add_conversion(builder, &cuda_kernel_dequantise, value->int8_node, value->int8,
                       value->buffer);
    }
    return value ? value->buffer : CUDA_NONE;
}

/* The step may belong to a node of the same output, such as a dropout in inference. */
void cuda_hold_int8(struct cuda_builder *builder, uint32_t block)
{
    struct cuda_value *value = &builder->values[block];

    for (uint32_t node = 0; node < builder->model->graph->node_count; node++) {
        if (builder->blocks.of_node[node] != block || value->int8 != CUDA_NONE ||
            value->buffer == CUDA_NONE || !(builder->model->quantised[node].step > 0))
            continue;
        value->int8_node = node;
        value->int8 = cuda_add_buffer(builder, cuda_numbers_of(builder, node));
        add_conversion(builder, &cuda_kernel_quantise, node, value->buffer, value->int8);
        value->buffer = CUDA_NONE;
    }
}

void cuda_emit_convolution_int8(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct cuda_int8 *parameters = &model->int8[own->node];
    const bool sum = own->input_count > 1;
    struct cuda_value *value = cuda_value(builder, own);
    const uint32_t fusion = DNN_SCALED | DNN_BIASED | (own->relu ? DNN_RECTIFIED : 0u) |
                            (sum ? DNN_ADDED | DNN_RESCALED : 0u);
    struct cuda_step step = cuda_step_of(&cuda_kernel_convolution_int8, own->node);
    struct dnn_shape *shape = &step.convolution.shape;
    void **at = step.convolution.tensors.at;

    *shape = cuda_shape(model, builder->program->count, own->node, DNN_FORWARD, fusion);
    shape->int8 = true;
    shape->int8_output = model->quantised[own->end].step > 0;
    at[DNN_WEIGHTS] = parameters->weight;
    at[DNN_SCALE] = parameters->scale;
    at[DNN_BIAS] = parameters->bias;
    at[DNN_LAST] = parameters->last;
    cuda_reads(&step, &at[DNN_INPUT], builder->values[own->inputs[0]].int8);
    if (sum)
        cuda_reads(&step, &at[DNN_OTHER], builder->values[own->inputs[1]].int8);
    if (shape->int8_output)
        value->int8 = cuda_add_buffer(builder, cuda_numbers_of(builder, own->end));
    else
        value->buffer = cuda_add_tensor(builder, own->end);
    value->int8_node = own->end;
    cuda_writes(&step, &at[DNN_OUTPUT], shape->int8_output ? value->int8 : value->buffer);
    cuda_add_convolution(builder, &step);
}
