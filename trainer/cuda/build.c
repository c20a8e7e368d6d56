/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/build.h"

#include "base/memory.h"
#include "trainer/cuda/fuse.h"

#include <assert.h>
#include <errno.h>

/* Reserve space for one more; keep an error in the builder. */
static bool grow_rows(struct cuda_builder *builder, void *rows, uint32_t count, size_t bytes)
{
    if (builder->code == 0)
        builder->code = memory_room(rows, count, bytes, "parts of a program");
    return builder->code == 0;
}

/* ---- buffers ---- */

uint32_t cuda_add_buffer(struct cuda_builder *builder, uint64_t bytes)
{
    struct cuda_program *program = builder->program;

    if (!grow_rows(builder, &program->buffers, program->buffer_count, sizeof *program->buffers))
        return CUDA_NONE;
    program->buffers[program->buffer_count] =
        (struct lifetime){.first = UINT32_MAX, .bytes = bytes + 16};
    return program->buffer_count++;
}

uint32_t cuda_add_tensor(struct cuda_builder *builder, uint32_t node)
{
    return cuda_add_buffer(builder, cuda_numbers_of(builder, node) *
                                        device_type_bytes(builder->model->type));
}

/* ---- steps ---- */

struct cuda_step cuda_step_of(const struct cuda_kernel *kernel, uint32_t node)
{
    return (struct cuda_step){.kernel = kernel, .node = node};
}

static void add_operand(struct cuda_step *step, void *pointer, uint32_t buffer, bool written)
{
    const ptrdiff_t place = (char *)pointer - (char *)step;

    if (buffer == CUDA_NONE)
        return;
    assert(place > 0 && (size_t)place < sizeof *step && step->operand_count < CUDA_OPERANDS_MAX);
    step->operands[step->operand_count++] = (struct cuda_operand){buffer, (uint16_t)place, written};
}

void cuda_reads(struct cuda_step *step, void *pointer, uint32_t buffer)
{
    add_operand(step, pointer, buffer, false);
}

void cuda_writes(struct cuda_step *step, void *pointer, uint32_t buffer)
{
    add_operand(step, pointer, buffer, true);
}

void cuda_add_step(struct cuda_builder *builder, const struct cuda_step *step)
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

/* ---- convolutions ---- */

struct cuda_step cuda_convolution_of(const struct cuda_builder *builder,
                                     const struct cuda_kernel *kernel, const struct cuda_block *own,
                                     enum dnn_kind kind)
{
    const uint32_t fusion = own->fusion[kind];
    struct cuda_step step = cuda_step_of(kernel, own->node);

    step.convolution.shape =
        cuda_shape(builder->model, builder->program->count, own->node, kind, fusion);
    cuda_fused_rows(builder->model, fusion, cuda_row(builder, own->inputs[0])->norms,
                    kind == DNN_FORWARD ? cuda_norm_after(&builder->blocks, own) : CUDA_NONE,
                    &step.convolution.tensors);
    return step;
}

void cuda_add_convolution(struct cuda_builder *builder, struct cuda_step *step)
{
    struct cuda_program *program = builder->program;
    int code = 0;

    if (builder->code == 0) /* finding the fastest engine takes time */
        builder->code = tick_ask(builder->model->config.tick);
    if (builder->code)
        return;
    const struct dnn_plan *plan =
        builder->model->dnn
            ? cuda_find_plan(builder->model, step->node, &step->convolution.shape, &code)
            : NULL;
    if (!plan && code != -ENOTSUP)
        builder->code = code;
    if (code == -ENOTSUP)
        cuda_note_plain(builder->model, step->node, step->kernel->operation,
                        &step->convolution.shape);
    step->convolution.plan = plan;
    if (plan && plan->workspace_bytes > program->workspace_bytes)
        program->workspace_bytes = plan->workspace_bytes;
    cuda_add_step(builder, step);
}

/* ---- shapes ---- */

struct device_pixels cuda_pixels_of(const struct cuda_builder *builder, uint32_t node)
{
    const struct graph_shape *shape = &builder->model->graph->nodes[node].shape;

    return (struct device_pixels){.type = builder->model->type,
                                  .channels = cuda_channels(builder->model, node),
                                  .count = (uint64_t)builder->program->count * shape->height *
                                           shape->width};
}

struct device_part cuda_part_of(const struct cuda_builder *builder, const struct cuda_block *block,
                                uint32_t n)
{
    const struct device_pixels pixels = cuda_pixels_of(builder, block->node);
    const uint32_t end = builder->blocks.rows[block->inputs[n]].end;
    const uint32_t channels = cuda_channels(builder->model, end);

    return (struct device_part){.type = pixels.type,
                                .pixels = pixels.count,
                                .channels = channels,
                                .from_channels = channels,
                                .to_channels = channels};
}

uint64_t cuda_numbers_of(const struct cuda_builder *builder, uint32_t node)
{
    return builder->program->count * cuda_numbers(builder->model, node);
}

void cuda_leave_gradient(struct cuda_builder *builder, uint32_t block, uint32_t gradient)
{
    struct cuda_value *value = &builder->values[block];

    if (builder->blocks.rows[block].needs_gradient && !builder->code)
        value->gradients[value->gradient_count++] = gradient;
}

/* ---- steps of both passes ---- */

void cuda_add_sum(struct cuda_builder *builder, const struct cuda_kernel *kernel, uint32_t node,
                  bool relu, uint32_t a, uint32_t b, uint32_t output)
{
    struct cuda_step step = cuda_step_of(kernel, node);

    step.sum.type = builder->model->type;
    step.sum.count = cuda_numbers_of(builder, node);
    step.sum.relu = relu;
    cuda_reads(&step, &step.sum.a, a);
    cuda_reads(&step, &step.sum.b, b);
    cuda_writes(&step, &step.sum.output, output);
    cuda_add_step(builder, &step);
}

void cuda_add_pool(struct cuda_builder *builder, const struct cuda_kernel *kernel, uint32_t node,
                   uint32_t from, uint32_t to, uint32_t winners)
{
    struct cuda_step step = cuda_step_of(kernel, node);
    const bool finds = kernel == &cuda_kernel_max_pool;

    step.pool.window = cuda_window(builder->model, builder->program->count, node);
    step.pool.type = builder->model->type;
    cuda_reads(&step, &step.pool.from, from);
    (finds ? cuda_writes : cuda_reads)(&step, &step.pool.winners, winners);
    cuda_writes(&step, &step.pool.to, to);
    cuda_add_step(builder, &step);
}

void cuda_add_lrn(struct cuda_builder *builder, const struct cuda_kernel *kernel, uint32_t node,
                  uint32_t input, uint32_t d_output, uint32_t output)
{
    struct cuda_step step = cuda_step_of(kernel, node);

    step.lrn.lrn = graph_kernel_lrn(&builder->model->graph->nodes[node], builder->program->count);
    step.lrn.type = builder->model->type;
    cuda_reads(&step, &step.lrn.input, input);
    cuda_reads(&step, &step.lrn.d_output, d_output);
    cuda_writes(&step, &step.lrn.output, output);
    cuda_add_step(builder, &step);
}

void cuda_add_dropout(struct cuda_builder *builder, const struct cuda_kernel *kernel, uint32_t node,
                      uint32_t input, uint32_t output)
{
    const struct graph_node *row = &builder->model->graph->nodes[node];
    struct cuda_step step = cuda_step_of(kernel, node);

    step.dropout.pixels = cuda_pixels_of(builder, node);
    step.dropout.plane = row->shape.height * row->shape.width;
    step.dropout.key = cuda_dropout_key(builder->model, node);
    step.dropout.rate = row->dropout_rate;
    cuda_reads(&step, &step.dropout.input, input);
    cuda_writes(&step, &step.dropout.output, output);
    cuda_add_step(builder, &step);
}
