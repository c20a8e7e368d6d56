/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's graph into a program: blocks, fused, then emitted as steps, those of the forward pass
 * block by block, and those of the backward pass from the last block. Each user of an output adds a
 * gradient to its list; most steps can sum two gradients themselves. The first error is kept in the
 * builder, so that emission reads as a list.
 */
#include "trainer/cuda/program.h"

#include "base/memory.h"
#include "trainer/cuda/blocks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* A block's output while steps are emitted. */
struct value {
    uint32_t buffer;          /* CUDA_NONE: held in INT8 only, or never stored */
    uint32_t int8, int8_node; /* the same in INT8, and the node whose step it has */
    uint32_t winners;         /* of a max-pool */
    uint32_t open;            /* where a sum's ReLU was, in bits */
    uint32_t gradient_count;
    uint32_t gradients[GRAPH_INPUTS_MAX + 1]; /* of the output, still to be summed */
    uint32_t dz; /* its gradient before the ReLU, if a convolution computed it; else CUDA_NONE */
};

struct emitter {
    struct cuda_program *program;
    struct cuda_model *model;
    struct cuda_blocks blocks;
    struct value *values; /* of each block */
    int code;             /* first error; its reason is the thread's */
};

static struct value *value_of(const struct emitter *builder, const struct cuda_block *block)
{
    return &builder->values[block - builder->blocks.rows];
}

static const struct cuda_block *block_at(const struct emitter *builder, uint32_t block)
{
    return &builder->blocks.rows[block];
}

/* ---- buffers and steps ---- */

/* Reserve space for one more; keep an error in the builder. */
static bool grow_rows(struct emitter *builder, void *rows, uint32_t count, size_t bytes)
{
    if (builder->code == 0)
        builder->code = memory_room(rows, count, bytes, "parts of a program");
    return builder->code == 0;
}

static uint32_t add_buffer(struct emitter *builder, uint64_t bytes)
{
    struct cuda_program *program = builder->program;

    if (!grow_rows(builder, &program->buffers, program->buffer_count, sizeof *program->buffers))
        return CUDA_NONE;
    program->buffers[program->buffer_count] =
        (struct lifetime){.first = UINT32_MAX, .bytes = bytes + 16};
    return program->buffer_count++;
}

static uint64_t numbers_of(const struct emitter *builder, uint32_t node)
{
    return builder->program->count * cuda_numbers(builder->model, node);
}

/* A tensor of a node's shape. */
static uint32_t add_tensor(struct emitter *builder, uint32_t node)
{
    return add_buffer(builder, numbers_of(builder, node) * device_type_bytes(builder->model->type));
}

static struct cuda_step step_of(const struct cuda_kernel *kernel, uint32_t node)
{
    return (struct cuda_step){.kernel = kernel, .node = node};
}

/* pointer: the address of one of the step's arguments, which will point to the buffer; NULL for
 * CUDA_NONE. */
static void add_operand(struct cuda_step *step, void *pointer, uint32_t buffer, bool written)
{
    const ptrdiff_t place = (char *)pointer - (char *)step;

    if (buffer == CUDA_NONE)
        return;
    assert(place > 0 && (size_t)place < sizeof *step && step->operand_count < CUDA_OPERANDS_MAX);
    step->operands[step->operand_count++] = (struct cuda_operand){buffer, (uint16_t)place, written};
}

static void reads(struct cuda_step *step, void *pointer, uint32_t buffer)
{
    add_operand(step, pointer, buffer, false);
}

static void writes(struct cuda_step *step, void *pointer, uint32_t buffer)
{
    add_operand(step, pointer, buffer, true);
}

/* Buffers of the step live at least until it. */
static void add_step(struct emitter *builder, const struct cuda_step *step)
{
    struct cuda_program *program = builder->program;

    if (!grow_rows(builder, &program->steps, program->step_count, sizeof *program->steps))
        return;
    for (uint32_t i = 0; i < step->operand_count; i++) {
        struct lifetime *life = &program->buffers[step->operands[i].buffer];
        if (life->first == UINT32_MAX)
            life->first = program->step_count;
        life->last = program->step_count;
    }
    program->steps[program->step_count++] = *step;
}

static struct device_pixels pixels_of(const struct emitter *builder, uint32_t node)
{
    const struct graph_shape *shape = &builder->model->graph->nodes[node].shape;

    return (struct device_pixels){.type = builder->model->type,
                                  .channels = cuda_channels(builder->model, node),
                                  .count = (uint64_t)builder->program->count * shape->height *
                                           shape->width};
}

/* ---- outputs and their gradients ---- */

static void add_conversion(struct emitter *builder, const struct cuda_kernel *kernel, uint32_t node,
                           uint32_t from, uint32_t to)
{
    struct cuda_step step = step_of(kernel, node);

    step.quantise.type = builder->model->type;
    step.quantise.count = numbers_of(builder, node);
    step.quantise.step = builder->model->quantised[node].step;
    reads(&step, &step.quantise.from, from);
    writes(&step, &step.quantise.to, to);
    add_step(builder, &step);
}

/* The output of a block's n-th input, converted if it is held in INT8. */
static uint32_t input_of(struct emitter *builder, const struct cuda_block *block, uint32_t n)
{
    struct value *value = n < block->input_count ? &builder->values[block->inputs[n]] : NULL;

    if (value && value->buffer == CUDA_NONE && value->int8 != CUDA_NONE) {
        value->buffer = add_tensor(builder, value->int8_node);
        add_conversion(builder, &cuda_kernel_dequantise, value->int8_node, value->int8,
                       value->buffer);
    }
    return value ? value->buffer : CUDA_NONE;
}

/* The step may belong to a node of the same output, such as a dropout in inference. */
static void hold_int8(struct emitter *builder, uint32_t block)
{
    struct value *value = &builder->values[block];

    for (uint32_t node = 0; node < builder->model->graph->node_count; node++) {
        if (builder->blocks.of_node[node] != block || value->int8 != CUDA_NONE ||
            value->buffer == CUDA_NONE || !(builder->model->quantised[node].step > 0))
            continue;
        value->int8_node = node;
        value->int8 = add_buffer(builder, numbers_of(builder, node));
        add_conversion(builder, &cuda_kernel_quantise, node, value->buffer, value->int8);
        value->buffer = CUDA_NONE;
    }
}

/* Add a tensor for a block's output. */
static uint32_t add_output(struct emitter *builder, const struct cuda_block *block)
{
    return value_of(builder, block)->buffer = add_tensor(builder, block->node);
}

/* Add a gradient of a block's output to those still to be summed. */
static void leave_gradient(struct emitter *builder, uint32_t block, uint32_t gradient)
{
    struct value *value = &builder->values[block];

    if (builder->blocks.rows[block].needs_gradient && !builder->code)
        value->gradients[value->gradient_count++] = gradient;
}

/* Add a sum, or a ReLU's gradient from its output a and the gradient b of that. */
static void add_sum(struct emitter *builder, const struct cuda_kernel *kernel, uint32_t node,
                    bool relu, uint32_t a, uint32_t b, uint32_t output)
{
    struct cuda_step step = step_of(kernel, node);

    step.sum.type = builder->model->type;
    step.sum.count = numbers_of(builder, node);
    step.sum.relu = relu;
    reads(&step, &step.sum.a, a);
    reads(&step, &step.sum.b, b);
    writes(&step, &step.sum.output, output);
    add_step(builder, &step);
}

/* Sum gradients until at most `most` are left. */
static void add_up(struct emitter *builder, const struct cuda_block *own, uint32_t most)
{
    struct value *value = value_of(builder, own);
    const uint32_t node = own->end;

    while (value->gradient_count > most && !builder->code) {
        const uint32_t sum = add_tensor(builder, node), last = --value->gradient_count;
        add_sum(builder, &cuda_kernel_gradient_sum, node, false, value->gradients[last - 1],
                value->gradients[last], sum);
        value->gradients[last - 1] = sum;
    }
}

static uint32_t whole_gradient(struct emitter *builder, const struct cuda_block *own)
{
    add_up(builder, own, 1);
    return value_of(builder, own)->gradients[0];
}

/* The gradient before the block's ReLU, if it has one. */
static uint32_t gradient_before_relu(struct emitter *builder, const struct cuda_block *own)
{
    const uint32_t whole = whole_gradient(builder, own);

    if (!own->relu)
        return whole;
    const uint32_t before = add_tensor(builder, own->node);
    add_sum(builder, &cuda_kernel_relu_backward, own->node, false, value_of(builder, own)->buffer,
            whole, before);
    return before;
}

/* Return a tensor for the result of a block of one input: its output, or the gradient of that
 * input.
 */
static uint32_t add_result(struct emitter *builder, const struct cuda_block *own, bool back)
{
    if (!back)
        return add_output(builder, own);
    const uint32_t gradient = add_tensor(builder, block_at(builder, own->inputs[0])->end);
    leave_gradient(builder, own->inputs[0], gradient);
    return gradient;
}

/* ---- BN ---- */

/* Compute scale and bias of a BN from x, from sums that a convolution computed, or from running
 * statistics. */
static void add_statistics(struct emitter *builder, uint32_t norm, uint32_t input)
{
    const struct cuda_model *model = builder->model;
    const bool counted = block_at(builder, input)->fusion[DNN_FORWARD] & DNN_STATISTICS;
    struct cuda_step step = step_of(!builder->program->training ? &cuda_kernel_norm_infer
                                    : counted                   ? &cuda_kernel_norm_finish
                                                                : &cuda_kernel_statistics,
                                    norm);

    step.statistics.pixels = pixels_of(builder, norm);
    step.statistics.norm = cuda_norm(model, norm);
    if (step.kernel == &cuda_kernel_norm_finish) {
        step.statistics.sums = cuda_norm_row(model, norm, CUDA_SUMS);
        step.statistics.squares = cuda_norm_row(model, norm, CUDA_SQUARES);
    }
    if (step.kernel == &cuda_kernel_statistics)
        reads(&step, &step.statistics.x, builder->values[input].buffer);
    add_step(builder, &step);
}

static void emit_sum(struct emitter *builder, const struct cuda_block *own)
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
        add_sum(builder, &cuda_kernel_sum, own->node, own->relu, input_of(builder, own, 0),
                input_of(builder, own, 1), add_output(builder, own));
        return;
    }
    struct cuda_step step = step_of(&cuda_kernel_affine, own->node);
    struct device_affine *with = &step.affine.with;
    step.affine.pixels = pixels_of(builder, own->node);
    *with = (struct device_affine){.scale = cuda_norm_row(model, own->norms[0], CUDA_SCALE),
                                   .bias = cuda_norm_row(model, own->norms[0], CUDA_BIAS),
                                   .relu = own->relu};
    if (own->norms[1] != CUDA_NONE) {
        with->other_scale = cuda_norm_row(model, own->norms[1], CUDA_SCALE);
        with->other_bias = cuda_norm_row(model, own->norms[1], CUDA_BIAS);
    }
    reads(&step, &step.affine.x, input_of(builder, own, 0));
    reads(&step, &with->other, input_of(builder, own, 1));
    writes(&step, &step.affine.y, add_output(builder, own));
    /* The backward pass needs no more of a ReLU's output than where it was open: a sixteenth of
     * what it would read. Not if a convolution goes back through the ReLU, which reads no bits. */
    if (builder->program->training && own->needs_gradient && own->relu && own->user_count > 0 &&
        !(block_at(builder, own->first_user)->fusion[DNN_DATA] & DNN_NORM) &&
        device_has_open(model->type, cuda_channels(model, own->node))) {
        const uint64_t bytes = numbers_of(builder, own->node) * device_type_bytes(model->type) / 16;
        value_of(builder, own)->open = add_buffer(builder, bytes);
        writes(&step, &with->open, value_of(builder, own)->open);
    }
    add_step(builder, &step);
}

static void emit_stem(struct emitter *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    struct value *value = value_of(builder, own);
    struct cuda_step step = step_of(&cuda_kernel_stem, own->end);

    add_statistics(builder, own->norms[0], own->inputs[0]);
    step.stem.window = cuda_window(builder->model, builder->program->count, own->end);
    step.stem.type = model->type;
    step.stem.scale = cuda_norm_row(model, own->norms[0], CUDA_SCALE);
    step.stem.bias = cuda_norm_row(model, own->norms[0], CUDA_BIAS);
    value->buffer = add_tensor(builder, own->end);
    value->winners = add_buffer(builder, numbers_of(builder, own->end));
    reads(&step, &step.stem.x, input_of(builder, own, 0));
    writes(&step, &step.stem.output, value->buffer);
    writes(&step, &step.stem.winners, value->winners);
    add_step(builder, &step);
}

/* Compute the gradient of the BN's input from dz. */
static void add_apply(struct emitter *builder, uint32_t norm, uint32_t input, uint32_t dz)
{
    struct cuda_step step = step_of(&cuda_kernel_norm_apply, norm);

    if (!block_at(builder, input)->needs_gradient)
        return;
    const uint32_t given = add_tensor(builder, block_at(builder, input)->end);
    step.norm_apply.pixels = pixels_of(builder, norm);
    step.norm_apply.abc = cuda_norm_row(builder->model, norm, CUDA_ABC);
    reads(&step, &step.norm_apply.x, builder->values[input].buffer);
    reads(&step, &step.norm_apply.dz, dz);
    writes(&step, &step.norm_apply.d_input, given);
    add_step(builder, &step);
    leave_gradient(builder, input, given);
}

/* Add a step that sums the gradients of a BN of x; the caller sets their source. */
static struct cuda_step norm_step(const struct emitter *builder, const struct cuda_kernel *kernel,
                                  uint32_t norm, uint32_t node, uint32_t x)
{
    const struct cuda_model *model = builder->model;
    const struct graph_node *row = &model->graph->nodes[norm];
    struct cuda_step step = step_of(kernel, node);

    step.norm_backward.pixels = pixels_of(builder, norm);
    step.norm_backward.norm = cuda_norm(model, norm);
    step.norm_backward.d_gamma = model->given[row->gamma];
    step.norm_backward.d_beta = model->given[row->beta];
    step.norm_backward.abc = cuda_norm_row(model, norm, CUDA_ABC);
    reads(&step, &step.norm_backward.x, x);
    return step;
}

/* Go back from a sum's output through ReLU to its first BN. Return dz. */
static uint32_t add_first_norm(struct emitter *builder, const struct cuda_block *own)
{
    const struct value *value = value_of(builder, own);
    struct cuda_step step = norm_step(builder, &cuda_kernel_norm_backward, own->norms[0], own->node,
                                      input_of(builder, own, 0));
    struct device_norm_gradient *gradient = &step.norm_backward.gradient;

    if (value->dz != CUDA_NONE) /* a convolution has computed it and both parameters' gradients */
        return value->dz;
    add_up(builder, own, 2);
    const bool two = value->gradient_count > 1;
    reads(&step, &gradient->d_output, value->gradients[0]);
    reads(&step, &gradient->d_other, two ? value->gradients[1] : CUDA_NONE);
    gradient->rectified = own->output == CUDA_OUTPUT_RECOMPUTED;
    if (own->relu && !gradient->rectified && value->open == CUDA_NONE)
        reads(&step, &gradient->mask, value->buffer);
    reads(&step, &gradient->open, value->open);
    const uint32_t dz = two || own->relu ? add_tensor(builder, own->node) : CUDA_NONE;
    writes(&step, &gradient->dz, dz);
    add_step(builder, &step);
    return dz == CUDA_NONE ? value->gradients[0] : dz;
}

static void emit_sum_backward(struct emitter *builder, const struct cuda_block *own)
{
    const bool normalises = own->norms[0] != CUDA_NONE;
    const uint32_t dz =
        normalises ? add_first_norm(builder, own) : gradient_before_relu(builder, own);

    if (normalises)
        add_apply(builder, own->norms[0], own->inputs[0], dz);
    else
        leave_gradient(builder, own->inputs[0], dz);
    if (own->input_count == 1)
        return;
    if (own->norms[1] == CUDA_NONE) {
        leave_gradient(builder, own->inputs[1], dz);
        return;
    }
    if (value_of(builder, own)->dz == CUDA_NONE) {
        struct cuda_step step = norm_step(builder, &cuda_kernel_norm_backward, own->norms[1],
                                          own->node, input_of(builder, own, 1));
        reads(&step, &step.norm_backward.gradient.d_output, dz);
        add_step(builder, &step);
    }
    add_apply(builder, own->norms[1], own->inputs[1], dz);
}

static void emit_stem_backward(struct emitter *builder, const struct cuda_block *own)
{
    const struct value *value = value_of(builder, own);
    const uint32_t norm = own->norms[0];
    struct cuda_step step =
        norm_step(builder, &cuda_kernel_stem_backward, norm, own->end, input_of(builder, own, 0));
    struct device_norm_gradient *gradient = &step.norm_backward.gradient;

    add_up(builder, own, 2);
    const uint32_t dz = add_tensor(builder, norm);
    step.norm_backward.window = cuda_window(builder->model, builder->program->count, own->end);
    reads(&step, &step.norm_backward.winners, value->winners);
    reads(&step, &gradient->d_output, value->gradients[0]);
    reads(&step, &gradient->d_other, value->gradient_count > 1 ? value->gradients[1] : CUDA_NONE);
    writes(&step, &gradient->dz, dz);
    add_step(builder, &step);
    add_apply(builder, norm, own->inputs[0], dz);
}

/* ---- convolutions ---- */

/* Point the tensors that a fused convolution needs besides input, weights and output to the rows of
 * its BNs: the two `before` it, and that `after` it. */
static void fused_rows(const struct cuda_model *model, uint32_t fusion, const uint32_t before[2],
                       uint32_t after, struct dnn_tensors *tensors)
{
    static const struct {
        enum dnn_fusion fusion;
        enum dnn_tensor which;
        uint32_t row;
        bool after;
    } rows[] = {{DNN_PROLOGUE, DNN_IN_SCALE, CUDA_TYPED_SCALE, false},
                {DNN_PROLOGUE, DNN_IN_BIAS, CUDA_TYPED_BIAS, false},
                {DNN_STATISTICS, DNN_SUMS, CUDA_SUMS, true},
                {DNN_STATISTICS, DNN_SQUARES, CUDA_SQUARES, true},
                {DNN_SCALED, DNN_SCALE, CUDA_SCALE, true},
                {DNN_SCALED, DNN_BIAS, CUDA_BIAS, true},
                {DNN_NORM, DNN_MEAN, CUDA_MEAN, false},
                {DNN_NORM, DNN_INVERSE, CUDA_INVERSE, false},
                {DNN_NORM, DNN_GAMMA, CUDA_GAMMA, false},
                {DNN_NORM, DNN_BETA, CUDA_BETA, false},
                {DNN_NORM, DNN_D_GAMMA, CUDA_D_GAMMA, false},
                {DNN_NORM, DNN_D_BETA, CUDA_D_BETA, false},
                {DNN_NORM, DNN_A, CUDA_ABC, false},
                {DNN_NORM, DNN_B, CUDA_ABC + 1, false},
                {DNN_NORM, DNN_C, CUDA_ABC + 2, false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const enum cuda_norm_row row = (enum cuda_norm_row)rows[i].row;
        if (!(fusion & rows[i].fusion))
            continue;
        tensors->at[rows[i].which] = cuda_norm_row(model, rows[i].after ? after : before[0], row);
        if (fusion & DNN_DUAL && !rows[i].after)
            tensors->at[dnn_beside(rows[i].which)] = cuda_norm_row(model, before[1], row);
    }
}

/* A block's convolution of that kind, with what is fused but without tensors. */
static struct cuda_step convolution_of(const struct emitter *builder,
                                       const struct cuda_kernel *kernel,
                                       const struct cuda_block *own, enum dnn_kind kind)
{
    const uint32_t fusion = own->fusion[kind];
    struct cuda_step step = step_of(kernel, own->node);

    step.convolution.shape =
        cuda_shape(builder->model, builder->program->count, own->node, kind, fusion);
    fused_rows(builder->model, fusion, block_at(builder, own->inputs[0])->norms,
               kind == DNN_FORWARD ? cuda_norm_after(&builder->blocks, own) : CUDA_NONE,
               &step.convolution.tensors);
    return step;
}

/* Add it with a cuDNN plan for its shape. Having none is not an error. */
static void add_convolution(struct emitter *builder, struct cuda_step *step)
{
    struct cuda_program *program = builder->program;
    int code = 0;

    if (builder->code == 0) /* finding the fastest engine takes time */
        builder->code = tick_ask(builder->model->config.tick);
    if (builder->code)
        return;
    const struct dnn_plan *plan =
        builder->model->dnn ? cuda_find_plan(builder->model, step->node, step->kernel->operation,
                                             &step->convolution.shape, &code)
                            : NULL;
    if (!plan && code != -ENOTSUP)
        builder->code = code;
    step->convolution.plan = plan;
    if (plan && plan->workspace_bytes > program->workspace_bytes)
        program->workspace_bytes = plan->workspace_bytes;
    add_step(builder, step);
}

static void emit_convolution(struct emitter *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct graph_node *node = &model->graph->nodes[own->node];
    const struct cuda_block *before = block_at(builder, own->inputs[0]);
    const uint32_t fusion = own->fusion[DNN_FORWARD];
    struct cuda_step step = convolution_of(builder, &cuda_kernel_convolution, own, DNN_FORWARD);
    void **at = step.convolution.tensors.at;
    uint32_t output;

    if (fusion & DNN_SCALED) { /* also applies the BN after it, and the sum that BN is part of */
        const struct cuda_block *user = block_at(builder, own->last_user);
        add_statistics(builder, user->norms[0], user->inputs[0]);
        if (fusion & DNN_ADDED)
            reads(&step, &at[DNN_OTHER], input_of(builder, user, 1));
        output = add_output(builder, user);
    } else {
        output = add_output(builder, own);
    }
    if (fusion & DNN_BIASED && !(fusion & DNN_SCALED))
        at[DNN_BIAS] = cuda_parameter(model, node->bias);
    at[DNN_WEIGHTS] = model->compute[node->weight];
    /* The input: unchanged, or what the preceding BN or sum reads; the sum's output is stored. */
    reads(&step, &at[DNN_INPUT], input_of(builder, fusion & DNN_PROLOGUE ? before : own, 0));
    if (fusion & DNN_SUMMED) {
        reads(&step, &at[DNN_RESIDUAL], input_of(builder, before, 1));
        writes(&step, &at[DNN_SUM], add_output(builder, before));
    }
    writes(&step, &at[DNN_OUTPUT], output);
    add_convolution(builder, &step);
    if ((node->bias == CUDA_NONE && !own->relu) || fusion & (DNN_BIASED | DNN_RECTIFIED))
        return;
    struct cuda_step bias = step_of(&cuda_kernel_bias, own->node); /* bias and ReLU in place */
    bias.affine.pixels = pixels_of(builder, own->node);
    bias.affine.with = (struct device_affine){
        .bias = node->bias == CUDA_NONE ? NULL : cuda_parameter(model, node->bias),
        .relu = own->relu};
    reads(&bias, &bias.affine.x, output);
    writes(&bias, &bias.affine.y, output);
    add_step(builder, &bias);
}

static void emit_convolution_backward(struct emitter *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct graph_node *node = &model->graph->nodes[own->node];
    const uint32_t input = own->inputs[0], fusion = own->fusion[DNN_DATA];
    const struct cuda_block *before = block_at(builder, input);
    const uint32_t d_output = gradient_before_relu(builder, own);

    if (node->bias != CUDA_NONE) {
        struct cuda_step bias = step_of(&cuda_kernel_bias_gradient, own->node);
        bias.bias_gradient.pixels = pixels_of(builder, own->node);
        bias.bias_gradient.d_bias = model->given[node->bias];
        reads(&bias, &bias.bias_gradient.d_output, d_output);
        add_step(builder, &bias);
    }
    struct cuda_step weight = convolution_of(builder, &cuda_kernel_weight, own, DNN_WEIGHT);
    void **of = weight.convolution.tensors.at;
    reads(&weight, &of[DNN_INPUT],
          input_of(builder, own->fusion[DNN_WEIGHT] & DNN_PROLOGUE ? before : own, 0));
    reads(&weight, &of[DNN_OUTPUT], d_output);
    of[DNN_WEIGHTS] = model->given[node->weight];
    add_convolution(builder, &weight);
    if (!before->needs_gradient)
        return;
    /* The gradient of the input, or dz if the step continues into the preceding BN or into both BNs
     * of a sum. */
    struct cuda_step step = convolution_of(builder, &cuda_kernel_data, own, DNN_DATA);
    void **at = step.convolution.tensors.at;
    const uint32_t given = add_tensor(builder, before->end);
    at[DNN_WEIGHTS] = model->compute[node->weight];
    reads(&step, &at[DNN_OUTPUT], d_output);
    if (fusion & DNN_ADDED) {
        reads(&step, &at[DNN_OTHER], whole_gradient(builder, before));
        value_of(builder, before)->gradient_count = 0;
    }
    if (fusion & DNN_SUMMED)
        reads(&step, &at[DNN_RESIDUAL], input_of(builder, before, 1));
    if (fusion & DNN_NORM) {
        reads(&step, &at[DNN_X], input_of(builder, before, 0));
        value_of(builder, before)->dz = given;
    } else {
        leave_gradient(builder, input, given);
    }
    writes(&step, &at[DNN_INPUT], given);
    add_convolution(builder, &step);
}

static void emit_convolution_int8(struct emitter *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct cuda_int8 *parameters = &model->int8[own->node];
    const bool sum = own->input_count > 1;
    struct value *value = value_of(builder, own);
    const uint32_t fusion = DNN_SCALED | DNN_BIASED | (own->relu ? DNN_RECTIFIED : 0u) |
                            (sum ? DNN_ADDED | DNN_RESCALED : 0u);
    struct cuda_step step = step_of(&cuda_kernel_convolution_int8, own->node);
    struct dnn_shape *shape = &step.convolution.shape;
    void **at = step.convolution.tensors.at;

    *shape = cuda_shape(model, builder->program->count, own->node, DNN_FORWARD, fusion);
    shape->int8 = true;
    shape->int8_output = model->quantised[own->end].step > 0;
    at[DNN_WEIGHTS] = parameters->weight;
    at[DNN_SCALE] = parameters->scale;
    at[DNN_BIAS] = parameters->bias;
    at[DNN_LAST] = parameters->last;
    reads(&step, &at[DNN_INPUT], builder->values[own->inputs[0]].int8);
    if (sum)
        reads(&step, &at[DNN_OTHER], builder->values[own->inputs[1]].int8);
    if (shape->int8_output)
        value->int8 = add_buffer(builder, numbers_of(builder, own->end));
    else
        value->buffer = add_tensor(builder, own->end);
    value->int8_node = own->end;
    writes(&step, &at[DNN_OUTPUT], shape->int8_output ? value->int8 : value->buffer);
    add_convolution(builder, &step);
}

/* ---- other blocks, in either pass ---- */

static void emit_pool(struct emitter *builder, const struct cuda_block *own, bool back)
{
    static const struct cuda_kernel *const kernels[2][2] = {
        {&cuda_kernel_average_pool, &cuda_kernel_average_pool_backward},
        {&cuda_kernel_max_pool, &cuda_kernel_max_pool_backward}};
    const bool max = builder->model->graph->nodes[own->node].kind == GRAPH_MAX_POOL;
    struct value *value = value_of(builder, own);
    struct cuda_step step = step_of(kernels[max][back], own->node);
    const uint32_t whole = back ? whole_gradient(builder, own) : CUDA_NONE;
    const uint32_t result = add_result(builder, own, back);

    if (max && !back)
        value->winners = add_buffer(builder, numbers_of(builder, own->node));
    step.pool.window = cuda_window(builder->model, builder->program->count, own->node);
    step.pool.type = builder->model->type;
    reads(&step, &step.pool.from, back ? whole : input_of(builder, own, 0));
    (back ? reads : writes)(&step, &step.pool.winners, value->winners);
    writes(&step, &step.pool.to, result);
    add_step(builder, &step);
}

static void emit_lrn(struct emitter *builder, const struct cuda_block *own, bool back)
{
    const struct cuda_model *model = builder->model;
    struct cuda_step step = step_of(back ? &cuda_kernel_lrn_backward : &cuda_kernel_lrn, own->node);
    const uint32_t whole = back ? whole_gradient(builder, own) : CUDA_NONE;
    const uint32_t result = add_result(builder, own, back);

    step.lrn.lrn = model->graph->nodes[own->node].lrn;
    step.lrn.lrn.images = builder->program->count;
    step.lrn.type = model->type;
    reads(&step, &step.lrn.input, input_of(builder, own, 0));
    reads(&step, &step.lrn.d_output, whole);
    writes(&step, &step.lrn.output, result);
    add_step(builder, &step);
}

static void emit_dropout(struct emitter *builder, const struct cuda_block *own, bool back)
{
    const struct cuda_model *model = builder->model;
    const struct graph_node *node = &model->graph->nodes[own->node];
    struct cuda_step step =
        step_of(back ? &cuda_kernel_dropout_backward : &cuda_kernel_dropout, own->node);
    const uint32_t whole = back ? whole_gradient(builder, own) : CUDA_NONE;
    const uint32_t result = add_result(builder, own, back);

    step.dropout.pixels = pixels_of(builder, own->node);
    step.dropout.plane = node->shape.height * node->shape.width;
    step.dropout.key = (const uint64_t *)(const void *)(model->header + 1) + own->node;
    step.dropout.rate = node->dropout_rate;
    reads(&step, &step.dropout.input, back ? whole : input_of(builder, own, 0));
    writes(&step, &step.dropout.output, result);
    add_step(builder, &step);
}

/* Copy each input to its channels of the concatenation, or its gradient from there. */
static void emit_join(struct emitter *builder, const struct cuda_block *own, bool back)
{
    const uint32_t all = cuda_channels(builder->model, own->node);
    const uint32_t whole = back ? whole_gradient(builder, own) : add_output(builder, own);
    uint32_t offset = 0;

    for (uint32_t i = 0; i < own->input_count; i++) {
        const struct cuda_block *input = block_at(builder, own->inputs[i]);
        const uint32_t channels = cuda_channels(builder->model, input->end);
        struct cuda_step step = step_of(back ? &cuda_kernel_split : &cuda_kernel_join, own->node);
        step.copy.part = (struct device_part){.type = builder->model->type,
                                              .pixels = pixels_of(builder, own->node).count,
                                              .channels = channels,
                                              .from_channels = back ? all : channels,
                                              .from_offset = back ? offset : 0,
                                              .to_channels = back ? channels : all,
                                              .to_offset = back ? 0 : offset};
        offset += channels;
        if (back && !input->needs_gradient)
            continue;
        const uint32_t part = back ? add_tensor(builder, input->end) : input_of(builder, own, i);
        reads(&step, &step.copy.from, back ? whole : part);
        writes(&step, &step.copy.to, back ? part : whole);
        add_step(builder, &step);
        if (back)
            leave_gradient(builder, own->inputs[i], part);
    }
    assert(offset == all);
}

/* ---- the whole program ---- */

static void emit_input(struct emitter *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct graph_shape *shape = &model->graph->nodes[0].shape;
    struct cuda_step step = step_of(&cuda_kernel_input, 0);

    step.input.to = (struct device_input){.type = model->type,
                                          .images = builder->program->count,
                                          .height = shape->height,
                                          .width = shape->width,
                                          .channels = CUDA_IMAGE_CHANNELS};
    for (int c = 0; c < 3; c++) {
        step.input.to.mean[c] = backend_mean[c];
        step.input.to.deviation[c] = backend_deviation[c];
    }
    writes(&step, &step.input.output, add_output(builder, own));
    add_step(builder, &step);
}

/* The loss, and the gradient of the logits. */
static void emit_head(struct emitter *builder, const struct cuda_block *own)
{
    const struct cuda_program *program = builder->program;
    struct cuda_step step = step_of(&cuda_kernel_loss, own->node);

    step.loss.images = program->count;
    step.loss.classes = builder->model->graph->classes;
    step.loss.training = program->training;
    reads(&step, &step.loss.logits, input_of(builder, own, 0));
    if (program->training) {
        const uint32_t gradient = add_tensor(builder, own->node);
        writes(&step, &step.loss.d_logits, gradient);
        leave_gradient(builder, own->inputs[0], gradient);
    }
    add_step(builder, &step);
}

/* Emit a block's steps of one pass. */
static void emit_block(struct emitter *builder, const struct cuda_block *own, bool back)
{
    switch (own->kind) {
    case CUDA_BLOCK_INPUT:
        return emit_input(builder, own);
    case CUDA_BLOCK_CONVOLUTION:
        return back ? emit_convolution_backward(builder, own) : emit_convolution(builder, own);
    case CUDA_BLOCK_SUM:
        return back ? emit_sum_backward(builder, own) : emit_sum(builder, own);
    case CUDA_BLOCK_STEM:
        return back ? emit_stem_backward(builder, own) : emit_stem(builder, own);
    case CUDA_BLOCK_POOL:
        return emit_pool(builder, own, back);
    case CUDA_BLOCK_JOIN:
        return emit_join(builder, own, back);
    case CUDA_BLOCK_LRN:
        return emit_lrn(builder, own, back);
    case CUDA_BLOCK_DROPOUT:
        return emit_dropout(builder, own, back);
    case CUDA_BLOCK_HEAD:
        return emit_head(builder, own);
    case CUDA_BLOCK_CONVOLUTION_INT8:
        return emit_convolution_int8(builder, own);
    }
}

static void emit_forward(struct emitter *builder)
{
    const struct cuda_model *model = builder->model;

    for (uint32_t i = 0; i < builder->blocks.count && !builder->code; i++) {
        emit_block(builder, block_at(builder, i), false);
        /* Observe the nodes that the block outputs, except the images: some of their channels are
         * padding. Nodes that compute nothing, such as a dropout, share the output of another. */
        for (uint32_t node = 1; model->config.calibration && node < model->graph->node_count;
             node++) {
            struct cuda_step step = step_of(&cuda_kernel_observe, node);
            if (builder->blocks.of_node[node] != i)
                continue;
            step.observe.type = model->type;
            step.observe.count = numbers_of(builder, node);
            step.observe.magnitudes = &model->magnitudes[node];
            reads(&step, &step.observe.values, builder->values[i].buffer);
            add_step(builder, &step);
        }
        if (model->quantised)
            hold_int8(builder, i);
    }
}

static void emit_backward(struct emitter *builder)
{
    const struct graph *graph = builder->model->graph;
    uint32_t block = builder->blocks.count - 2; /* before the head */

    for (uint32_t node = graph->node_count - 1; node > 0 && !builder->code; node--) {
        const struct cuda_block *own = block_at(builder, block);
        if (own->node == node) {
            if (own->needs_gradient)
                emit_block(builder, own, true);
            block--;
        }
        /* A node's parameters follow each other, from the one that was final last. */
        struct cuda_step ready = step_of(&cuda_kernel_ready, node);
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
            add_step(builder, &ready);
    }
}

struct cuda_program *cuda_compile(struct cuda_model *model, uint32_t count, bool training)
{
    struct cuda_program *program = memory_zeroed(sizeof *program);
    struct emitter builder = {.program = program, .model = model};
    int code = program ? 0 : -ENOMEM;

    if (code == 0) {
        *program = (struct cuda_program){.model = model, .count = count, .training = training};
        code = cuda_blocks_make(&builder.blocks, model, count, training);
    }
    if (code == 0) {
        builder.values = memory_array(builder.blocks.count, sizeof *builder.values);
        code = builder.values ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; code == 0 && i < builder.blocks.count; i++)
        builder.values[i] = (struct value){.buffer = CUDA_NONE,
                                           .int8 = CUDA_NONE,
                                           .winners = CUDA_NONE,
                                           .open = CUDA_NONE,
                                           .dz = CUDA_NONE};
    if (code == 0) {
        emit_forward(&builder);
        if (training && !builder.code)
            emit_backward(&builder);
        code = builder.code;
    }
    free(builder.values);
    for (uint32_t i = 0; code == 0 && i < program->buffer_count; i++)
        if (program->buffers[i].first == UINT32_MAX) /* unused by all steps */
            program->buffers[i].bytes = 0;
    if (code == 0)
        code = lifetimes_plan(program->buffers, sizeof *program->buffers, program->buffer_count,
                              &program->arena_bytes);
    cuda_blocks_free(&builder.blocks);
    if (code) {
        cuda_program_destroy(program);
        return NULL;
    }
    return program;
}
