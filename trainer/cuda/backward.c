/* SPDX-License-Identifier: Apache-2.0
 * The backward pass, block by block from the last. Each user of an output adds a gradient to its
 * list; most steps can sum two gradients themselves. */
#include "trainer/cuda/build.h"
#include "trainer/cuda/fuse.h"

/* ---- gradients of outputs ---- */

/* Sum gradients until at most `most` are left. */
static void add_up(struct cuda_builder *builder, const struct cuda_block *own, uint32_t most)
{
    struct cuda_value *value = cuda_value(builder, own);
    const uint32_t node = own->end;

    while (value->gradient_count > most && !builder->code) {
        const uint32_t sum = cuda_add_tensor(builder, node), last = --value->gradient_count;
        cuda_add_sum(builder, &cuda_kernel_gradient_sum, node, false, value->gradients[last - 1],
                     value->gradients[last], sum);
        value->gradients[last - 1] = sum;
    }
}

static uint32_t whole_gradient(struct cuda_builder *builder, const struct cuda_block *own)
{
    add_up(builder, own, 1);
    return cuda_value(builder, own)->gradients[0];
}

/* The gradient before the block's ReLU, if it has one. */
static uint32_t gradient_before_relu(struct cuda_builder *builder, const struct cuda_block *own)
{
    const uint32_t whole = whole_gradient(builder, own);
    struct cuda_step step = cuda_step_of(&cuda_kernel_relu_backward, own->node);

    if (!own->relu)
        return whole;
    const uint32_t before = cuda_add_tensor(builder, own->node);
    step.sum.type = builder->model->type;
    step.sum.count = cuda_numbers_of(builder, own->node);
    cuda_reads(&step, &step.sum.a, cuda_value(builder, own)->buffer);
    cuda_reads(&step, &step.sum.b, whole);
    cuda_writes(&step, &step.sum.output, before);
    cuda_add_step(builder, &step);
    return before;
}

/* ---- convolutions ---- */

static void add_convolution(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct graph_node *node = &model->graph->nodes[own->node];
    const uint32_t input = own->inputs[0], fusion = own->fusion[DNN_DATA];
    const struct cuda_block *before = cuda_row(builder, input);
    const uint32_t d_output = gradient_before_relu(builder, own);

    if (node->bias != CUDA_NONE) {
        struct cuda_step bias = cuda_step_of(&cuda_kernel_bias_gradient, own->node);
        bias.bias_gradient.pixels = cuda_pixels_of(builder, own->node);
        bias.bias_gradient.d_bias = cuda_gradient(model, node->bias);
        cuda_reads(&bias, &bias.bias_gradient.d_output, d_output);
        cuda_add_step(builder, &bias);
    }
    struct cuda_step weight = cuda_convolution_of(builder, &cuda_kernel_weight, own, DNN_WEIGHT);
    void **of = weight.convolution.tensors.at;
    cuda_reads(&weight, &of[DNN_INPUT],
               cuda_input(builder, own->fusion[DNN_WEIGHT] & DNN_PROLOGUE ? before : own, 0));
    cuda_reads(&weight, &of[DNN_OUTPUT], d_output);
    of[DNN_WEIGHTS] = cuda_gradient(model, node->weight);
    cuda_add_convolution(builder, &weight);
    if (!before->needs_gradient)
        return;
    /* The gradient of the input, or dz if the step continues into the preceding BN or into both BNs
     * of a sum. */
    struct cuda_step step = cuda_convolution_of(builder, &cuda_kernel_data, own, DNN_DATA);
    void **at = step.convolution.tensors.at;
    const uint32_t given = cuda_add_tensor(builder, before->end);
    at[DNN_WEIGHTS] = model->compute[node->weight];
    cuda_reads(&step, &at[DNN_OUTPUT], d_output);
    if (fusion & DNN_ADDED) {
        cuda_reads(&step, &at[DNN_OTHER], whole_gradient(builder, before));
        cuda_value(builder, before)->gradient_count = 0;
    }
    if (fusion & DNN_SUMMED)
        cuda_reads(&step, &at[DNN_RESIDUAL], cuda_input(builder, before, 1));
    if (fusion & DNN_NORM) {
        cuda_reads(&step, &at[DNN_X], cuda_input(builder, before, 0));
        cuda_value(builder, before)->dz = given;
    } else {
        cuda_leave_gradient(builder, input, given);
    }
    cuda_writes(&step, &at[DNN_INPUT], given);
    cuda_add_convolution(builder, &step);
}

/* ---- BN ---- */

/* Compute the gradient of the BN's input from dz. */
static void add_apply(struct cuda_builder *builder, uint32_t norm, uint32_t input, uint32_t dz)
{
    struct cuda_step step = cuda_step_of(&cuda_kernel_norm_apply, norm);

    if (!cuda_row(builder, input)->needs_gradient)
        return;
    const uint32_t given = cuda_add_tensor(builder, cuda_row(builder, input)->end);
    step.norm_apply.pixels = cuda_pixels_of(builder, norm);
    step.norm_apply.abc = cuda_norm_row(builder->model, norm, CUDA_ABC);
    cuda_reads(&step, &step.norm_apply.x, builder->values[input].buffer);
    cuda_reads(&step, &step.norm_apply.dz, dz);
    cuda_writes(&step, &step.norm_apply.d_input, given);
    cuda_add_step(builder, &step);
    cuda_leave_gradient(builder, input, given);
}

/* Add a step that sums the gradients of a BN of x; the caller sets their source. */
static struct cuda_step norm_step(const struct cuda_builder *builder,
                                  const struct cuda_kernel *kernel, uint32_t norm, uint32_t node,
                                  uint32_t x)
{
    const struct cuda_model *model = builder->model;
    const struct graph_node *row = &model->graph->nodes[norm];
    struct cuda_step step = cuda_step_of(kernel, node);

    step.norm_backward.pixels = cuda_pixels_of(builder, norm);
    step.norm_backward.norm = cuda_norm(model, norm);
    step.norm_backward.d_gamma = cuda_gradient(model, row->gamma);
    step.norm_backward.d_beta = cuda_gradient(model, row->beta);
    step.norm_backward.abc = cuda_norm_row(model, norm, CUDA_ABC);
    cuda_reads(&step, &step.norm_backward.x, x);
    return step;
}

/* Go back from a sum's output through ReLU to its first BN. Return dz. */
static uint32_t add_first_norm(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_value *value = cuda_value(builder, own);
    struct cuda_step step = norm_step(builder, &cuda_kernel_norm_backward, own->norms[0], own->node,
                                      cuda_input(builder, own, 0));
    struct device_norm_gradient *gradient = &step.norm_backward.gradient;

    if (value->dz != CUDA_NONE) /* a convolution has computed it and both parameters' gradients */
        return value->dz;
    add_up(builder, own, 2);
    const bool two = value->gradient_count > 1;
    cuda_reads(&step, &gradient->d_output, value->gradients[0]);
    cuda_reads(&step, &gradient->d_other, two ? value->gradients[1] : CUDA_NONE);
    gradient->rectified = own->output == CUDA_OUTPUT_RECOMPUTED;
    if (own->relu && !gradient->rectified && value->open == CUDA_NONE)
        cuda_reads(&step, &gradient->mask, value->buffer);
    cuda_reads(&step, &gradient->open, value->open);
    const uint32_t dz = two || own->relu ? cuda_add_tensor(builder, own->node) : CUDA_NONE;
    cuda_writes(&step, &gradient->dz, dz);
    cuda_add_step(builder, &step);
    return dz == CUDA_NONE ? value->gradients[0] : dz;
}

static void add_sum(struct cuda_builder *builder, const struct cuda_block *own)
{
    const bool normalises = own->norms[0] != CUDA_NONE;
    const uint32_t dz =
        normalises ? add_first_norm(builder, own) : gradient_before_relu(builder, own);

    if (normalises)
        add_apply(builder, own->norms[0], own->inputs[0], dz);
    else
        cuda_leave_gradient(builder, own->inputs[0], dz);
    if (own->input_count == 1)
        return;
    if (own->norms[1] == CUDA_NONE) {
        cuda_leave_gradient(builder, own->inputs[1], dz);
        return;
    }
    if (cuda_value(builder, own)->dz == CUDA_NONE) {
        struct cuda_step step = norm_step(builder, &cuda_kernel_norm_backward, own->norms[1],
                                          own->node, cuda_input(builder, own, 1));
        cuda_reads(&step, &step.norm_backward.gradient.d_output, dz);
        cuda_add_step(builder, &step);
    }
    add_apply(builder, own->norms[1], own->inputs[1], dz);
}

static void add_stem(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_value *value = cuda_value(builder, own);
    const uint32_t norm = own->norms[0];
    struct cuda_step step =
        norm_step(builder, &cuda_kernel_stem_backward, norm, own->end, cuda_input(builder, own, 0));
    struct device_norm_gradient *gradient = &step.norm_backward.gradient;

    add_up(builder, own, 2);
    const uint32_t dz = cuda_add_tensor(builder, norm);
    step.norm_backward.window = cuda_window(builder->model, builder->program->count, own->end);
    cuda_reads(&step, &step.norm_backward.winners, value->winners);
    cuda_reads(&step, &gradient->d_output, value->gradients[0]);
    cuda_reads(&step, &gradient->d_other,
               value->gradient_count > 1 ? value->gradients[1] : CUDA_NONE);
    cuda_writes(&step, &gradient->dz, dz);
    cuda_add_step(builder, &step);
    add_apply(builder, norm, own->inputs[0], dz);
}

/* ---- other blocks ---- */

/* Return a tensor for the gradient of the block's only input. */
static uint32_t input_gradient(struct cuda_builder *builder, const struct cuda_block *own)
{
    const uint32_t gradient = cuda_add_tensor(builder, cuda_row(builder, own->inputs[0])->end);

    cuda_leave_gradient(builder, own->inputs[0], gradient);
    return gradient;
}

static void add_pool(struct cuda_builder *builder, const struct cuda_block *own)
{
    const bool max = builder->model->graph->nodes[own->node].kind == GRAPH_MAX_POOL;
    const uint32_t whole = whole_gradient(builder, own);

    cuda_add_pool(
        builder, max ? &cuda_kernel_max_pool_backward : &cuda_kernel_average_pool_backward,
        own->node, whole, input_gradient(builder, own), cuda_value(builder, own)->winners);
}

static void add_lrn(struct cuda_builder *builder, const struct cuda_block *own)
{
    const uint32_t whole = whole_gradient(builder, own);

    cuda_add_lrn(builder, &cuda_kernel_lrn_backward, own->node, cuda_input(builder, own, 0), whole,
                 input_gradient(builder, own));
}

static void add_dropout(struct cuda_builder *builder, const struct cuda_block *own)
{
    const uint32_t whole = whole_gradient(builder, own);

    cuda_add_dropout(builder, &cuda_kernel_dropout_backward, own->node, whole,
                     input_gradient(builder, own));
}

static void add_split(struct cuda_builder *builder, const struct cuda_block *own)
{
    const uint32_t whole = whole_gradient(builder, own);
    uint32_t offset = 0;

    for (uint32_t i = 0; i < own->input_count; i++) {
        const struct cuda_block *input = cuda_row(builder, own->inputs[i]);
        struct cuda_step step = cuda_step_of(&cuda_kernel_split, own->node);
        step.copy.part = cuda_part_of(builder, own, i);
        step.copy.part.from_channels = cuda_channels(builder->model, own->node);
        step.copy.part.from_offset = offset;
        offset += step.copy.part.channels;
        if (!input->needs_gradient)
            continue;
        const uint32_t given = cuda_add_tensor(builder, input->end);
        cuda_reads(&step, &step.copy.from, whole);
        cuda_writes(&step, &step.copy.to, given);
        cuda_add_step(builder, &step);
        cuda_leave_gradient(builder, own->inputs[i], given);
    }
}

void cuda_emit_backward(struct cuda_builder *builder)
{
    static void (*const emit[])(struct cuda_builder *, const struct cuda_block *) = {
        [CUDA_BLOCK_CONVOLUTION] = add_convolution,
        [CUDA_BLOCK_SUM] = add_sum,
        [CUDA_BLOCK_STEM] = add_stem,
        [CUDA_BLOCK_POOL] = add_pool,
        [CUDA_BLOCK_JOIN] = add_split,
        [CUDA_BLOCK_LRN] = add_lrn,
        [CUDA_BLOCK_DROPOUT] = add_dropout,
    };
    const struct graph *graph = builder->model->graph;
    uint32_t block = builder->blocks.count - 2; /* before the head */

    for (uint32_t node = graph->node_count - 1; node > 0 && !builder->code; node--) {
        const struct cuda_block *own = cuda_row(builder, block);
        if (own->node == node) {
            if (own->needs_gradient)
                emit[own->kind](builder, own);
            block--;
        }
        /* A node's parameters follow each other, from the one that was final last. */
        struct cuda_step ready = cuda_step_of(&cuda_kernel_ready, node);
        uint32_t chunk = 0;
        ready.ready.floats = graph_final_floats(graph, node);
        for (uint32_t i = 0; i < graph->parameter_count; i++) {
            const uint32_t count = device_chunks_of(graph->parameters[i].count);
            if (graph->parameters[i].node == node) {
                ready.ready.first_chunk = ready.ready.chunk_count ? ready.ready.first_chunk : chunk;
                ready.ready.chunk_count += count;
            }
            chunk += count;
        }
        if (ready.ready.floats > 0)
            cuda_add_step(builder, &ready);
    }
}
