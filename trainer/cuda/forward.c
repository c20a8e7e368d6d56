/* SPDX-License-Identifier: Apache-2.0
 * The forward pass, block by block. */
#include "trainer/cuda/build.h"
#include "trainer/cuda/fuse.h"

/* Add a tensor for a block's output. */
static uint32_t add_output(struct cuda_builder *builder, const struct cuda_block *block)
{
    return cuda_value(builder, block)->buffer = cuda_add_tensor(builder, block->node);
}

static void add_input(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct graph_shape *shape = &model->graph->nodes[0].shape;
    struct cuda_step step = cuda_step_of(&cuda_kernel_input, 0);

    step.input.to = (struct device_input){.type = model->type,
                                          .images = builder->program->count,
                                          .height = shape->height,
                                          .width = shape->width,
                                          .source_height = shape->height,
                                          .source_width = shape->width,
                                          .channels = CUDA_IMAGE_CHANNELS};
    for (int c = 0; c < 3; c++) {
        step.input.to.mean[c] = backend_mean[c];
        step.input.to.deviation[c] = backend_deviation[c];
    }
    cuda_writes(&step, &step.input.output, add_output(builder, own));
    cuda_add_step(builder, &step);
}

/* ---- BN ---- */

/* Compute scale and bias of a BN from x, from sums that a convolution computed, or from running
 * statistics. */
static void add_statistics(struct cuda_builder *builder, uint32_t norm, uint32_t input)
{
    const struct cuda_model *model = builder->model;
    const bool counted = cuda_row(builder, input)->fusion[DNN_FORWARD] & DNN_STATISTICS;
    struct cuda_step step = cuda_step_of(!builder->program->training ? &cuda_kernel_norm_infer
                                         : counted                   ? &cuda_kernel_norm_finish
                                                                     : &cuda_kernel_statistics,
                                         norm);

    step.statistics.pixels = cuda_pixels_of(builder, norm);
    step.statistics.norm = cuda_norm(model, norm);
    if (step.kernel == &cuda_kernel_norm_finish) {
        step.statistics.sums = cuda_norm_row(model, norm, CUDA_SUMS);
        step.statistics.squares = cuda_norm_row(model, norm, CUDA_SQUARES);
    }
    if (step.kernel == &cuda_kernel_statistics)
        cuda_reads(&step, &step.statistics.x, builder->values[input].buffer);
    cuda_add_step(builder, &step);
}

static void add_sum(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;

    if (own->output == CUDA_OUTPUT_BY_INPUT)
        return;
    for (uint32_t i = 0; i < 2; i++)
        if (own->norms[i] != CUDA_NONE)
            add_statistics(builder, own->norms[i], own->inputs[i]);
    if (own->output != CUDA_OUTPUT_STORED)
        return;
    if (own->norms[0] == CUDA_NONE) {
        cuda_add_sum(builder, &cuda_kernel_sum, own->node, own->relu, cuda_input(builder, own, 0),
                     cuda_input(builder, own, 1), add_output(builder, own));
        return;
    }
    struct cuda_step step = cuda_step_of(&cuda_kernel_affine, own->node);
    struct device_affine *with = &step.affine.with;
    step.affine.pixels = cuda_pixels_of(builder, own->node);
    *with = (struct device_affine){.scale = cuda_norm_row(model, own->norms[0], CUDA_SCALE),
                                   .bias = cuda_norm_row(model, own->norms[0], CUDA_BIAS),
                                   .relu = own->relu};
    if (own->norms[1] != CUDA_NONE) {
        with->other_scale = cuda_norm_row(model, own->norms[1], CUDA_SCALE);
        with->other_bias = cuda_norm_row(model, own->norms[1], CUDA_BIAS);
    }
    cuda_reads(&step, &step.affine.x, cuda_input(builder, own, 0));
    cuda_reads(&step, &with->other, cuda_input(builder, own, 1));
    cuda_writes(&step, &step.affine.y, add_output(builder, own));
    /* The backward pass needs no more of a ReLU's output than where it was open: a sixteenth of
     * what it would read. Not if a convolution goes back through the ReLU, which reads no bits. */
    if (builder->program->training && own->needs_gradient && own->relu && own->user_count > 0 &&
        !(cuda_row(builder, own->first_user)->fusion[DNN_DATA] & DNN_NORM) &&
        device_has_open(model->type, cuda_channels(model, own->node))) {
        const uint64_t bytes =
            cuda_numbers_of(builder, own->node) * device_type_bytes(model->type) / 16;
        cuda_value(builder, own)->open = cuda_add_buffer(builder, bytes);
        cuda_writes(&step, &with->open, cuda_value(builder, own)->open);
    }
    cuda_add_step(builder, &step);
}

static void add_stem(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    struct cuda_value *value = cuda_value(builder, own);
    struct cuda_step step = cuda_step_of(&cuda_kernel_stem, own->end);

    add_statistics(builder, own->norms[0], own->inputs[0]);
    step.stem.window = cuda_window(builder->model, builder->program->count, own->end);
    step.stem.type = model->type;
    step.stem.scale = cuda_norm_row(model, own->norms[0], CUDA_SCALE);
    step.stem.bias = cuda_norm_row(model, own->norms[0], CUDA_BIAS);
    value->buffer = cuda_add_tensor(builder, own->end);
    value->winners = cuda_add_buffer(builder, cuda_numbers_of(builder, own->end));
    cuda_reads(&step, &step.stem.x, cuda_input(builder, own, 0));
    cuda_writes(&step, &step.stem.output, value->buffer);
    cuda_writes(&step, &step.stem.winners, value->winners);
    cuda_add_step(builder, &step);
}

/* ---- convolutions ---- */

static void add_convolution(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct graph_node *node = &model->graph->nodes[own->node];
    const struct cuda_block *before = cuda_row(builder, own->inputs[0]);
    const uint32_t fusion = own->fusion[DNN_FORWARD];
    struct cuda_step step =
        cuda_convolution_of(builder, &cuda_kernel_convolution, own, DNN_FORWARD);
    void **at = step.convolution.tensors.at;
    uint32_t output;

    if (fusion & DNN_SCALED) { /* also applies the BN after it, and the sum that BN is part of */
        const struct cuda_block *user = cuda_row(builder, own->last_user);
        add_statistics(builder, user->norms[0], user->inputs[0]);
        if (fusion & DNN_ADDED)
            cuda_reads(&step, &at[DNN_OTHER], cuda_input(builder, user, 1));
        output = add_output(builder, user);
    } else {
        output = add_output(builder, own);
    }
    if (fusion & DNN_BIASED && !(fusion & DNN_SCALED))
        at[DNN_BIAS] = cuda_parameter(model, node->bias);
    at[DNN_WEIGHTS] = model->compute[node->weight];
    /* The input: unchanged, or what the preceding BN or sum reads; the sum's output is stored. */
    cuda_reads(&step, &at[DNN_INPUT], cuda_input(builder, fusion & DNN_PROLOGUE ? before : own, 0));
    if (fusion & DNN_SUMMED) {
        cuda_reads(&step, &at[DNN_RESIDUAL], cuda_input(builder, before, 1));
        cuda_writes(&step, &at[DNN_SUM], add_output(builder, before));
    }
    cuda_writes(&step, &at[DNN_OUTPUT], output);
    cuda_add_convolution(builder, &step);
    if ((node->bias == CUDA_NONE && !own->relu) || fusion & (DNN_BIASED | DNN_RECTIFIED))
        return;
    struct cuda_step bias = cuda_step_of(&cuda_kernel_bias, own->node); /* bias and ReLU in place */
    bias.affine.pixels = cuda_pixels_of(builder, own->node);
    bias.affine.with = (struct device_affine){
        .bias = node->bias == CUDA_NONE ? NULL : cuda_parameter(model, node->bias),
        .relu = own->relu};
    cuda_reads(&bias, &bias.affine.x, output);
    cuda_writes(&bias, &bias.affine.y, output);
    cuda_add_step(builder, &bias);
}

/* ---- other blocks ---- */

static void add_pool(struct cuda_builder *builder, const struct cuda_block *own)
{
    const bool max = builder->model->graph->nodes[own->node].kind == GRAPH_MAX_POOL;
    struct cuda_value *value = cuda_value(builder, own);

    add_output(builder, own);
    if (max)
        value->winners = cuda_add_buffer(builder, cuda_numbers_of(builder, own->node));
    cuda_add_pool(builder, max ? &cuda_kernel_max_pool : &cuda_kernel_average_pool, own->node,
                  cuda_input(builder, own, 0), value->buffer, value->winners);
}

static void add_lrn(struct cuda_builder *builder, const struct cuda_block *own)
{
    cuda_add_lrn(builder, &cuda_kernel_lrn, own->node, cuda_input(builder, own, 0), CUDA_NONE,
                 add_output(builder, own));
}

static void add_dropout(struct cuda_builder *builder, const struct cuda_block *own)
{
    cuda_add_dropout(builder, &cuda_kernel_dropout, own->node, cuda_input(builder, own, 0),
                     add_output(builder, own));
}

static void add_join(struct cuda_builder *builder, const struct cuda_block *own)
{
    const uint32_t output = add_output(builder, own);
    uint32_t offset = 0;

    for (uint32_t i = 0; i < own->input_count; i++) {
        struct cuda_step step = cuda_step_of(&cuda_kernel_join, own->node);
        step.copy.part = cuda_part_of(builder, own, i);
        step.copy.part.to_channels = cuda_channels(builder->model, own->node);
        step.copy.part.to_offset = offset;
        offset += step.copy.part.channels;
        cuda_reads(&step, &step.copy.from, cuda_input(builder, own, i));
        cuda_writes(&step, &step.copy.to, output);
        cuda_add_step(builder, &step);
    }
}

/* The loss, and the gradient of the logits. */
static void add_head(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_program *program = builder->program;
    struct cuda_step step = cuda_step_of(&cuda_kernel_loss, own->node);

    step.loss.images = program->count;
    step.loss.classes = builder->model->graph->classes;
    step.loss.training = program->training;
    cuda_reads(&step, &step.loss.logits, cuda_input(builder, own, 0));
    if (program->training) {
        const uint32_t gradient = cuda_add_tensor(builder, own->node);
        cuda_writes(&step, &step.loss.d_logits, gradient);
        cuda_leave_gradient(builder, own->inputs[0], gradient);
    }
    cuda_add_step(builder, &step);
}

void cuda_emit_forward(struct cuda_builder *builder)
{
    static void (*const emit[])(struct cuda_builder *, const struct cuda_block *) = {
        [CUDA_BLOCK_INPUT] = add_input, [CUDA_BLOCK_CONVOLUTION] = add_convolution,
        [CUDA_BLOCK_SUM] = add_sum,     [CUDA_BLOCK_STEM] = add_stem,
        [CUDA_BLOCK_POOL] = add_pool,   [CUDA_BLOCK_JOIN] = add_join,
        [CUDA_BLOCK_LRN] = add_lrn,     [CUDA_BLOCK_DROPOUT] = add_dropout,
        [CUDA_BLOCK_HEAD] = add_head,   [CUDA_BLOCK_CONVOLUTION_INT8] = cuda_emit_convolution_int8,
    };
    const struct cuda_model *model = builder->model;

    for (uint32_t i = 0; i < builder->blocks.count && !builder->code; i++) {
        emit[builder->blocks.rows[i].kind](builder, cuda_row(builder, i));
        /* Observe the nodes that the block outputs, except the images: some of their channels are
         * padding. Nodes that compute nothing, such as a dropout, share the output of another. */
        for (uint32_t node = 1; model->config.calibration && node < model->graph->node_count;
             node++) {
            struct cuda_step step = cuda_step_of(&cuda_kernel_observe, node);
            if (builder->blocks.of_node[node] != i)
                continue;
            step.observe.type = model->type;
            step.observe.count = cuda_numbers_of(builder, node);
            step.observe.magnitudes = &model->magnitudes[node];
            cuda_reads(&step, &step.observe.values, builder->values[i].buffer);
            cuda_add_step(builder, &step);
        }
        if (model->quantised)
            cuda_hold_int8(builder, i);
    }
}
