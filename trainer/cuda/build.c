/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/cuda.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

void cuda_keep_code(struct cuda_plan *plan, int code)
{
    if (plan->code == 0)
        plan->code = code;
}

/* Room for one more. Keeps the error in the plan. */
static bool grow(struct cuda_plan *plan, void *rows, uint32_t count, size_t bytes)
{
    if (plan->code == 0)
        plan->code = memory_room(rows, count, bytes, "parts of a plan");
    return plan->code == 0;
}

static uint32_t add_row(struct cuda_plan *plan, const struct cuda_buffer *buffer)
{
    if (!grow(plan, &plan->buffers, plan->buffer_count, sizeof *plan->buffers))
        return CUDA_NONE;
    plan->buffers[plan->buffer_count] = *buffer;
    return plan->buffer_count++;
}

uint32_t cuda_add_buffer(struct cuda_plan *plan, uint64_t bytes)
{
    return add_row(plan, &(struct cuda_buffer){.life = {.first = UINT32_MAX, .bytes = bytes + 16}});
}

uint32_t cuda_add_fixed(struct cuda_plan *plan, void *address)
{
    return add_row(plan, &(struct cuda_buffer){.address = address, .fixed = true});
}

uint32_t cuda_add_tensor(struct cuda_plan *plan, uint32_t node)
{
    return cuda_add_buffer(plan, plan->count * cuda_numbers(plan->model, node) *
                                     device_type_bytes(plan->model->type));
}

/* The step that is added next needs it. */
static void touch(struct cuda_plan *plan, uint32_t buffer)
{
    if (plan->code || buffer == CUDA_NONE)
        return;
    struct lifetime *life = &plan->buffers[buffer].life;
    if (life->first == UINT32_MAX)
        life->first = plan->step_count;
    life->last = plan->step_count;
}

void cuda_add_step(struct cuda_plan *plan, const struct cuda_step *step)
{
    touch(plan, step->in);
    touch(plan, step->other);
    touch(plan, step->mask);
    touch(plan, step->out);
    touch(plan, step->extra);
    if (grow(plan, &plan->steps, plan->step_count, sizeof *plan->steps))
        plan->steps[plan->step_count++] = *step;
}

struct cuda_step cuda_step_of(int (*run)(const struct cuda_plan *, const struct cuda_step *),
                              uint32_t node)
{
    return (struct cuda_step){.run = run,
                              .node = node,
                              .in = CUDA_NONE,
                              .other = CUDA_NONE,
                              .mask = CUDA_NONE,
                              .out = CUDA_NONE,
                              .extra = CUDA_NONE};
}

struct dnn_shape cuda_shape(const struct cuda_plan *plan, uint32_t node, enum dnn_kind kind)
{
    return (struct dnn_shape){.kind = kind,
                              .type = plan->model->type,
                              .tf32 = plan->model->settings->precision == CUDA_TF32,
                              .window = cuda_window(plan, node)};
}

void cuda_find_dnn(struct cuda_plan *plan, struct cuda_step *step)
{
    int code = 0;

    if (plan->code || !plan->model->dnn)
        return;
    step->dnn = dnn_find(plan->model->dnn, &step->shape, &code);
    if (!step->dnn && code != -ENOTSUP)
        cuda_keep_code(plan, code);
    if (!step->dnn)
        return;
    const uint64_t bytes = dnn_workspace_bytes(step->dnn);
    plan->workspace_bytes = bytes > plan->workspace_bytes ? bytes : plan->workspace_bytes;
}

/* ---- nodes ---- */

uint32_t cuda_beside(const struct cuda_plan *plan, uint32_t sum)
{
    const struct graph_node *rows = plan->model->graph->nodes;
    const struct cuda_node *own = &plan->nodes[sum];

    if (own->norm_other != CUDA_NONE)
        return rows[own->norm_other].inputs[0];
    return rows[sum].inputs[rows[sum].inputs[0] == own->norm ? 1 : 0];
}

uint32_t cuda_channels(const struct cuda_model *model, uint32_t node)
{
    return node == 0 ? model->image_channels : model->graph->nodes[node].shape.channels;
}

uint64_t cuda_numbers(const struct cuda_model *model, uint32_t node)
{
    const struct graph_shape *shape = &model->graph->nodes[node].shape;

    return (uint64_t)cuda_channels(model, node) * shape->height * shape->width;
}

struct device_pixels cuda_pixels(const struct cuda_plan *plan, uint32_t node)
{
    const struct graph_shape *shape = &plan->model->graph->nodes[node].shape;

    return (struct device_pixels){.type = plan->model->type,
                                  .channels = cuda_channels(plan->model, node),
                                  .count = (uint64_t)plan->count * shape->height * shape->width};
}

/* A fully connected layer is a convolution of one pixel with all numbers of an image as channels.
 */
struct kernel_window cuda_window(const struct cuda_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    const struct graph_shape *in = &plan->model->graph->nodes[node->inputs[0]].shape;

    if (node->kind == GRAPH_FULLY_CONNECTED)
        return (struct kernel_window){
            .images = plan->count,
            .in_channels = (uint32_t)cuda_numbers(plan->model, node->inputs[0]),
            .in_height = 1,
            .in_width = 1,
            .out_channels = node->shape.channels,
            .out_height = 1,
            .out_width = 1,
            .height = 1,
            .width = 1,
            .stride = 1,
            .groups = 1,
        };
    return (struct kernel_window){
        .images = plan->count,
        .in_channels = cuda_channels(plan->model, node->inputs[0]),
        .in_height = in->height,
        .in_width = in->width,
        .out_channels = node->shape.channels,
        .out_height = node->shape.height,
        .out_width = node->shape.width,
        .height = node->window.height,
        .width = node->window.width,
        .stride = node->window.stride,
        .pad_top = node->window.pad_top,
        .pad_left = node->window.pad_left,
        .groups = node->groups,
        .count_padding = node->window.count_padding,
    };
}

struct kernel_lrn cuda_lrn(const struct cuda_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];

    return (struct kernel_lrn){.images = plan->count,
                               .channels = node->shape.channels,
                               .plane = (size_t)node->shape.height * node->shape.width,
                               .size = node->window.height,
                               .alpha = node->lrn_alpha,
                               .beta = node->lrn_beta,
                               .k = node->lrn_k};
}

float *cuda_norm_row(const struct cuda_model *model, uint32_t node, enum cuda_norm_row row)
{
    return model->norms + model->graph->nodes[node].statistics / 2 * CUDA_NORM_ROWS +
           (uint64_t)row * model->graph->nodes[node].shape.channels;
}

struct device_norm cuda_norm(const struct cuda_model *model, uint32_t number)
{
    const struct graph_node *node = &model->graph->nodes[number];
    float *running = model->statistics + node->statistics;

    return (struct device_norm){
        .epsilon = node->epsilon,
        .momentum = node->momentum,
        .gamma = model->parameters + model->graph->parameters[node->gamma].offset,
        .beta = model->parameters + model->graph->parameters[node->beta].offset,
        .running_mean = running,
        .running_variance = running + node->shape.channels,
        .mean = cuda_norm_row(model, number, CUDA_MEAN),
        .inverse = cuda_norm_row(model, number, CUDA_INVERSE),
        .scale = cuda_norm_row(model, number, CUDA_SCALE),
        .bias = cuda_norm_row(model, number, CUDA_BIAS),
        .typed_scale = cuda_norm_row(model, number, CUDA_TYPED_SCALE),
        .typed_bias = cuda_norm_row(model, number, CUDA_TYPED_BIAS),
        .gamma_copy = cuda_norm_row(model, number, CUDA_GAMMA),
        .beta_copy = cuda_norm_row(model, number, CUDA_BETA),
    };
}

float *cuda_gradient(const struct cuda_model *model, uint32_t parameter)
{
    return model->gradients + model->graph->parameters[parameter].offset;
}

const float *cuda_unscale(const struct cuda_model *model)
{
    return model->type == DEVICE_FP16 ? &model->header->unscale : NULL;
}

const uint64_t *cuda_dropout_key(const struct cuda_model *model, uint32_t node)
{
    return (const uint64_t *)(const void *)(model->header + 1) + node;
}

int32_t *cuda_labels(const struct cuda_model *model, struct cuda_header *header)
{
    return (int32_t *)(void *)((uint64_t *)(void *)(header + 1) + model->graph->node_count);
}
