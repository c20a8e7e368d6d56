/* SPDX-License-Identifier: Apache-2.0
 * The forward pass: what each node becomes. */
#include "trainer/cuda/cuda.h"

/* ---- steps ---- */

static int run_normalise(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct graph_shape *shape = &model->graph->nodes[0].shape;
    struct device_input input = {.type = model->type,
                                 .images = plan->count,
                                 .height = shape->height,
                                 .width = shape->width,
                                 .source_height = shape->height,
                                 .source_width = shape->width,
                                 .channels = model->image_channels};

    for (int c = 0; c < 3; c++) {
        input.mean[c] = backend_mean[c];
        input.deviation[c] = backend_deviation[c];
    }
    return device_normalise(&input, plan->pass->rows, cuda_at(plan, step->out),
                            model->runtime.stream);
}

/* in: input; out: output; other: what is added, extra: the bias. Behind a BN (step->norm), in: what
 * it normalises; of a sum, mask: what is added to it, or what the BN that is added normalises, and
 * extra: the sum, which this leaves, too. */
static int run_convolution(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    void *weight = model->compute[model->graph->nodes[step->node].weight];

    if (!step->dnn)
        return device_convolution(&step->shape.window, model->type, cuda_at(plan, step->in), weight,
                                  cuda_at(plan, step->out), model->runtime.stream);
    struct dnn_tensors tensors = {.at = {[DNN_INPUT] = cuda_at(plan, step->in),
                                         [DNN_WEIGHTS] = weight,
                                         [DNN_OUTPUT] = cuda_at(plan, step->out)},
                                  .workspace = model->workspace};
    cuda_add_tensors(plan, step, &tensors);
    return dnn_run(model->dnn, step->dnn, &tensors);
}

/* in, out: the output of a convolution without its bias, and with it; other: the bias, or none. */
static int run_bias(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct device_pixels pixels = cuda_pixels(plan, step->node);
    const struct device_affine affine = {.bias = cuda_at(plan, step->other), .relu = step->relu};

    return device_affine(&pixels, &affine, cuda_at(plan, step->in), cuda_at(plan, step->out),
                         plan->model->runtime.stream);
}

/* in: what BN normalises. */
static int run_statistics(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct device_pixels pixels = cuda_pixels(plan, step->node);
    const struct device_norm norm = cuda_norm(model, step->node);

    if (!plan->training)
        return device_norm_infer(pixels.channels, &norm, model->runtime.stream);
    return device_norm_statistics(&pixels, &norm, cuda_at(plan, step->in), model->partial,
                                  model->runtime.stream);
}

/* The convolution before has left the sums. */
static int run_norm_finish(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct device_pixels pixels = cuda_pixels(plan, step->node);
    const struct device_norm norm = cuda_norm(model, step->node);

    return device_norm_finish(&pixels, &norm, cuda_norm_row(model, step->node, CUDA_SUMS),
                              cuda_norm_row(model, step->node, CUDA_SQUARES),
                              model->runtime.stream);
}

/* A BN by itself, or a sum that applies one or two. in: of the BN; other: of the sum. */
static int apply(const struct cuda_plan *plan, const struct cuda_step *step, uint32_t norm,
                 uint32_t norm_other)
{
    const struct cuda_model *model = plan->model;
    const struct device_pixels pixels = cuda_pixels(plan, step->node);
    struct device_affine affine = {.scale = cuda_norm_row(model, norm, CUDA_SCALE),
                                   .bias = cuda_norm_row(model, norm, CUDA_BIAS),
                                   .other = cuda_at(plan, step->other),
                                   .relu = step->relu};

    if (norm_other != CUDA_NONE) {
        affine.other_scale = cuda_norm_row(model, norm_other, CUDA_SCALE);
        affine.other_bias = cuda_norm_row(model, norm_other, CUDA_BIAS);
    }
    return device_affine(&pixels, &affine, cuda_at(plan, step->in), cuda_at(plan, step->out),
                         model->runtime.stream);
}

static int run_norm(const struct cuda_plan *plan, const struct cuda_step *step)
{
    return apply(plan, step, step->node, CUDA_NONE);
}

static int run_norm_sum(const struct cuda_plan *plan, const struct cuda_step *step)
{
    return apply(plan, step, step->norm, step->norm_other);
}

/* in: of the BN; out: of the pool, whose window the step's node has; extra: winners. */
static int run_stem(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct kernel_window window = cuda_window(plan, step->node);

    return device_stem(&window, model->type, cuda_norm_row(model, step->norm, CUDA_SCALE),
                       cuda_norm_row(model, step->norm, CUDA_BIAS), cuda_at(plan, step->in),
                       cuda_at(plan, step->out), cuda_at(plan, step->extra), model->runtime.stream);
}

int cuda_run_sum(const struct cuda_plan *plan, const struct cuda_step *step)
{
    return device_sum(plan->model->type, plan->count * cuda_numbers(plan->model, step->node),
                      cuda_at(plan, step->in), cuda_at(plan, step->other), step->relu,
                      cuda_at(plan, step->out), plan->model->runtime.stream);
}

int cuda_run_dropout(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct graph_node *node = &plan->model->graph->nodes[step->node];
    const struct device_pixels pixels = cuda_pixels(plan, step->node);

    return device_dropout(&pixels, node->shape.height * node->shape.width,
                          cuda_dropout_key(plan->model, step->node), node->dropout_rate,
                          cuda_at(plan, step->in), cuda_at(plan, step->out),
                          plan->model->runtime.stream);
}

static int run_pool(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct kernel_window window = cuda_window(plan, step->node);

    if (model->graph->nodes[step->node].kind == GRAPH_AVERAGE_POOL)
        return device_average_pool(&window, model->type, cuda_at(plan, step->in),
                                   cuda_at(plan, step->out), model->runtime.stream);
    return device_max_pool(&window, model->type, cuda_at(plan, step->in), cuda_at(plan, step->out),
                           cuda_at(plan, step->extra), model->runtime.stream);
}

static int run_lrn(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct kernel_lrn lrn = cuda_lrn(plan, step->node);

    return device_lrn(&lrn, plan->model->type, cuda_at(plan, step->in), cuda_at(plan, step->out),
                      plan->model->runtime.stream);
}

/* in: one part; out: the whole; part_offset: where it lies, in channels. */
static int run_join(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct device_pixels pixels = cuda_pixels(plan, step->node);
    const struct device_part part = {.type = pixels.type,
                                     .pixels = pixels.count,
                                     .channels = step->part_channels,
                                     .from_channels = step->part_channels,
                                     .to_channels = pixels.channels,
                                     .to_offset = step->part_offset};

    return device_copy_part(&part, cuda_at(plan, step->in), cuda_at(plan, step->out),
                            plan->model->runtime.stream);
}

/* ---- building ---- */

static uint32_t input_value(struct cuda_plan *plan, uint32_t node, uint32_t which)
{
    return cuda_value(plan, plan->model->graph->nodes[node].inputs[which]);
}

/* The output of a node, and of the ReLU behind that it computes. */
static uint32_t set_value(struct cuda_plan *plan, uint32_t node, uint32_t value)
{
    struct cuda_node *own = &plan->nodes[node];

    own->value = value;
    if (own->relu != CUDA_NONE)
        plan->nodes[own->relu].value = value;
    return value;
}

/* A step from a node's first input to a new tensor of its own. */
static void add_plain(struct cuda_plan *plan, uint32_t node,
                      int (*run)(const struct cuda_plan *, const struct cuda_step *))
{
    struct cuda_step step = cuda_step_of(run, node);

    step.in = input_value(plan, node, 0);
    step.out = set_value(plan, node, cuda_add_tensor(plan, node));
    step.relu = plan->nodes[node].relu != CUDA_NONE;
    if (run == run_pool && plan->model->graph->nodes[node].kind == GRAPH_MAX_POOL)
        step.extra = plan->nodes[node].which =
            cuda_add_buffer(plan, plan->count * cuda_numbers(plan->model, node));
    cuda_add_step(plan, &step);
}

/* The convolution computes the BN behind it, too, and the sum that it is part of. */
static void apply_behind(struct cuda_plan *plan, struct cuda_step *step)
{
    const uint32_t norm = plan->nodes[step->node].consumer;
    const uint32_t sum = plan->nodes[norm].consumer;
    const struct cuda_step coefficients = cuda_step_of(run_statistics, norm);

    cuda_add_step(plan, &coefficients);
    step->norm_behind = norm;
    plan->nodes[norm].applied = true;
    if (!(step->shape.fusion & DNN_ADDED)) {
        step->out = set_value(plan, norm, cuda_add_tensor(plan, norm));
        return;
    }
    plan->nodes[sum].applied = true;
    step->other = input_value(plan, sum, plan->model->graph->nodes[sum].inputs[0] == norm ? 1 : 0);
    step->out = set_value(plan, sum, cuda_add_tensor(plan, sum));
}

/* The convolution computes the BN before it, too, or the sum, whose value it leaves for others. */
static void apply_before(struct cuda_plan *plan, struct cuda_step *step)
{
    const struct cuda_node *own = &plan->nodes[step->node];
    const uint32_t end = own->end_before;

    step->norm = own->norm_before;
    step->in = input_value(plan, step->norm, 0);
    if (!(step->shape.fusion & DNN_SUMMED))
        return;
    step->norm_other = plan->nodes[end].norm_other;
    step->mask = cuda_value(plan, cuda_beside(plan, end));
    step->extra = set_value(plan, end, cuda_add_tensor(plan, end));
}

static void add_convolution(struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_model *model = plan->model;
    const struct cuda_node *own = &plan->nodes[node];
    const uint32_t bias = model->graph->nodes[node].bias;
    struct cuda_step step = cuda_step_of(run_convolution, node);
    struct cuda_step behind = cuda_step_of(run_bias, node);

    step.in = input_value(plan, node, 0);
    step.shape = cuda_shape(plan, node, DNN_FORWARD);
    step.shape.fusion = own->fusion[DNN_FORWARD];
    if (step.shape.fusion & DNN_SCALED)
        apply_behind(plan, &step);
    else
        step.out = set_value(plan, node, cuda_add_tensor(plan, node));
    if (bias != CUDA_NONE)
        behind.other =
            cuda_add_fixed(plan, model->parameters + model->graph->parameters[bias].offset);
    if (!(step.shape.fusion & DNN_SCALED))
        step.extra = behind.other;
    if (step.shape.fusion & DNN_PROLOGUE)
        apply_before(plan, &step);
    if (step.shape.fusion & DNN_STATISTICS)
        step.norm_behind = own->consumer;
    cuda_find_dnn(plan, &step);
    cuda_add_step(plan, &step);
    behind.relu = plan->nodes[node].relu != CUDA_NONE;
    if ((bias == CUDA_NONE && !behind.relu) || step.shape.fusion & (DNN_BIASED | DNN_RECTIFIED))
        return;
    behind.in = behind.out = step.out;
    cuda_add_step(plan, &behind);
}

static void add_stem(struct cuda_plan *plan, uint32_t norm, uint32_t pool)
{
    struct cuda_step step = cuda_step_of(run_stem, pool);

    step.norm = norm;
    step.in = input_value(plan, norm, 0);
    step.out = plan->nodes[pool].value = cuda_add_tensor(plan, pool);
    step.extra = plan->nodes[pool].which =
        cuda_add_buffer(plan, plan->count * cuda_numbers(plan->model, pool));
    cuda_add_step(plan, &step);
}

static void add_norm(struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_node *own = &plan->nodes[node];
    if (own->applied)
        return;
    struct cuda_step step = cuda_step_of(own->counted ? run_norm_finish : run_statistics, node);

    if (!own->counted)
        step.in = input_value(plan, node, 0);
    cuda_add_step(plan, &step);
    if (own->pool != CUDA_NONE)
        add_stem(plan, node, own->pool);
    else if (!own->absorbed && !own->unstored)
        add_plain(plan, node, run_norm);
}

/* The side of a sum that a BN comes in at, if it applies one, goes first. */
static void add_sum(struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_node *own = &plan->nodes[node];
    struct cuda_step step = cuda_step_of(cuda_run_sum, node);

    if (own->applied)
        return;
    step.in = input_value(plan, node, 0);
    step.other = input_value(plan, node, 1);
    step.relu = own->relu != CUDA_NONE;
    step.norm = own->norm;
    step.norm_other = own->norm_other;
    if (own->norm != CUDA_NONE) {
        step.run = run_norm_sum;
        step.in = input_value(plan, own->norm, 0);
        step.other = cuda_value(plan, cuda_beside(plan, node));
    }
    step.out = set_value(plan, node, cuda_add_tensor(plan, node));
    cuda_add_step(plan, &step);
}

static void add_join(struct cuda_plan *plan, uint32_t node)
{
    const struct graph_node *row = &plan->model->graph->nodes[node];
    uint32_t offset = 0, out = set_value(plan, node, cuda_add_tensor(plan, node));

    for (uint32_t i = 0; i < row->input_count; i++) {
        struct cuda_step step = cuda_step_of(run_join, node);
        step.in = input_value(plan, node, i);
        step.out = out;
        step.part_offset = offset;
        step.part_channels = cuda_channels(plan->model, row->inputs[i]);
        offset += step.part_channels;
        cuda_add_step(plan, &step);
    }
}

static void add_input(struct cuda_plan *plan)
{
    struct cuda_step step = cuda_step_of(run_normalise, 0);

    step.out = set_value(plan, 0, cuda_add_tensor(plan, 0));
    cuda_add_step(plan, &step);
}

static void add_node(struct cuda_plan *plan, uint32_t node)
{
    const bool absorbed = plan->nodes[node].absorbed;

    switch (plan->model->graph->nodes[node].kind) {
    case GRAPH_INPUT:
        return add_input(plan);
    case GRAPH_CONVOLUTION:
    case GRAPH_FULLY_CONNECTED:
        return add_convolution(plan, node);
    case GRAPH_BATCH_NORM:
        return add_norm(plan, node);
    case GRAPH_RELU:
        if (!absorbed) {
            add_plain(plan, node, cuda_run_sum);
            if (!plan->code)
                plan->steps[plan->step_count - 1].relu = true;
        }
        return;
    case GRAPH_MAX_POOL:
        if (!absorbed)
            add_plain(plan, node, run_pool);
        return;
    case GRAPH_AVERAGE_POOL:
        return add_plain(plan, node, run_pool);
    case GRAPH_ADD:
        return add_sum(plan, node);
    case GRAPH_CONCAT:
        return add_join(plan, node);
    case GRAPH_LRN:
        return add_plain(plan, node, run_lrn);
    case GRAPH_DROPOUT:
        if (plan->training)
            add_plain(plan, node, cuda_run_dropout);
        else
            set_value(plan, node, input_value(plan, node, 0));
        return;
    }
}

void cuda_build_forward(struct cuda_plan *plan)
{
    for (uint32_t i = 0; i < plan->model->graph->node_count && !plan->code; i++) {
        if (!cuda_int8_build(plan, i))
            add_node(plan, i);
        cuda_int8_hold(plan, i);
        cuda_observe_build(plan, i);
    }
}
