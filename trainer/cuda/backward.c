/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward pass, node by node from the last. Each consumer of a tensor leaves a gradient with
 * it; what two left, most steps add up themselves.
 */
#include "trainer/cuda/cuda.h"

/* ---- steps ---- */

/* in: logits; out: their gradient, or none. */
static int run_loss(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const uint32_t classes = model->graph->classes;
    void *stream = model->runtime.stream;
    int code = 0;

    if (plan->pass->labelled)
        code = device_cross_entropy(model->type, plan->count, classes, cuda_at(plan, step->in),
                                    cuda_labels(model, model->header), plan->pass->label_smoothing,
                                    &model->header->gradient_scale, cuda_at(plan, step->out),
                                    model->per_image, &model->report->loss, stream);
    if (code == 0 && !plan->training) {
        const uint64_t numbers = (uint64_t)plan->count * classes;
        code = device_gradient(model->type, numbers, 1, 1, cuda_at(plan, step->in), NULL,
                               model->logits, stream);
        if (code == 0)
            code =
                runtime_copy(model->logits_result, model->logits, numbers * sizeof(float), stream);
    }
    return code;
}

/* in: input; other: gradient of the output; out: gradient of the weights, in the layer's type. */
static int run_weight(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;

    if (!step->dnn)
        return device_convolution_weight(&step->shape.window, model->type, cuda_at(plan, step->in),
                                         cuda_at(plan, step->other), cuda_at(plan, step->out),
                                         model->runtime.stream);
    struct dnn_tensors tensors = {.at = {[DNN_INPUT] = cuda_at(plan, step->in),
                                         [DNN_WEIGHTS] = cuda_at(plan, step->out),
                                         [DNN_OUTPUT] = cuda_at(plan, step->other)},
                                  .workspace = model->workspace};
    cuda_add_tensors(plan, step, &tensors);
    return dnn_run(model->dnn, step->dnn, &tensors);
}

/* in: gradient of the weights in the layer's type; it goes to the arena. */
static int run_home(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const uint32_t weight = model->graph->nodes[step->node].weight;
    const struct graph_parameter *parameter = &model->graph->parameters[weight];

    return device_gradient(model->type, parameter->count, step->part_channels,
                           cuda_channels(model, model->graph->nodes[step->node].inputs[0]),
                           cuda_at(plan, step->in), cuda_unscale(model),
                           cuda_gradient(model, weight), model->runtime.stream);
}

/* in: gradient of the output; out: of the input. Into a BN (step->norm), out: its dz; extra: what
 * it normalised; mask: what a sum added to it, or what the BN that it added normalised; other: a
 * second gradient. */
static int run_data(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    void *weight = model->compute[model->graph->nodes[step->node].weight];

    if (!step->dnn)
        return device_convolution_data(&step->shape.window, model->type, cuda_at(plan, step->in),
                                       weight, cuda_at(plan, step->out), model->runtime.stream);
    struct dnn_tensors tensors = {.at = {[DNN_INPUT] = cuda_at(plan, step->out),
                                         [DNN_WEIGHTS] = weight,
                                         [DNN_OUTPUT] = cuda_at(plan, step->in)},
                                  .workspace = model->workspace};
    cuda_add_tensors(plan, step, &tensors);
    return dnn_run(model->dnn, step->dnn, &tensors);
}

/* in: gradient of the output. */
static int run_bias_gradient(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct device_pixels pixels = cuda_pixels(plan, step->node);

    return device_bias_gradient(&pixels, cuda_at(plan, step->in), cuda_unscale(model),
                                cuda_gradient(model, model->graph->nodes[step->node].bias),
                                model->partial, model->runtime.stream);
}

/* in, mask: gradient and value of the output; out: gradient before the ReLU. */
static int run_relu_backward(const struct cuda_plan *plan, const struct cuda_step *step)
{
    return device_relu_backward(plan->model->type,
                                plan->count * cuda_numbers(plan->model, step->node),
                                cuda_at(plan, step->mask), cuda_at(plan, step->in),
                                cuda_at(plan, step->out), plan->model->runtime.stream);
}

/* in: what BN normalised; other, extra: gradients of its output; mask: the ReLU's output; out: dz.
 */
static int run_norm_backward(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[step->norm];
    const struct device_pixels pixels = cuda_pixels(plan, step->norm);
    const struct device_norm norm = cuda_norm(model, step->norm);
    const struct device_norm_gradient gradient = {.d_output = cuda_at(plan, step->other),
                                                  .d_other = cuda_at(plan, step->extra),
                                                  .mask = cuda_at(plan, step->mask),
                                                  .dz = cuda_at(plan, step->out),
                                                  .rectified = step->relu};

    return device_norm_backward(
        &pixels, &norm, &gradient, cuda_at(plan, step->in), cuda_unscale(model),
        cuda_gradient(model, node->gamma), cuda_gradient(model, node->beta),
        cuda_norm_row(model, step->norm, CUDA_ABC), model->partial, model->runtime.stream);
}

/* A convolution has left dz, and gradients of both parameters. */
static int run_norm_parameters(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[step->norm];

    return device_norm_parameters(
        node->shape.channels, cuda_norm_row(model, step->norm, CUDA_D_GAMMA),
        cuda_norm_row(model, step->norm, CUDA_D_BETA), cuda_unscale(model),
        cuda_gradient(model, node->gamma), cuda_gradient(model, node->beta), model->runtime.stream);
}

/* The same through ReLU and max-pool; mask: its winners. The step's node is the pool. */
static int run_stem_backward(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[step->norm];
    const struct kernel_window window = cuda_window(plan, step->node);
    const struct device_norm norm = cuda_norm(model, step->norm);

    return device_stem_backward(
        &window, model->type, &norm, cuda_at(plan, step->mask), cuda_at(plan, step->in),
        cuda_at(plan, step->other), cuda_at(plan, step->extra), cuda_at(plan, step->out),
        cuda_unscale(model), cuda_gradient(model, node->gamma), cuda_gradient(model, node->beta),
        cuda_norm_row(model, step->norm, CUDA_ABC), model->partial, model->runtime.stream);
}

/* in: what BN normalised; other: dz; out: gradient of its input. */
static int run_norm_apply(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct device_pixels pixels = cuda_pixels(plan, step->norm);

    return device_norm_backward_apply(&pixels, cuda_norm_row(plan->model, step->norm, CUDA_ABC),
                                      cuda_at(plan, step->other), cuda_at(plan, step->in),
                                      cuda_at(plan, step->out), plan->model->runtime.stream);
}

/* in: gradient of the output; mask: winners of a max-pool; out: gradient of the input. */
static int run_pool_backward(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct kernel_window window = cuda_window(plan, step->node);

    if (step->mask == CUDA_NONE)
        return device_average_pool_backward(&window, model->type, cuda_at(plan, step->in),
                                            cuda_at(plan, step->out), model->runtime.stream);
    return device_max_pool_backward(&window, model->type, cuda_at(plan, step->mask),
                                    cuda_at(plan, step->in), cuda_at(plan, step->out),
                                    model->runtime.stream);
}

/* in: gradient of the output; other: the input. */
static int run_lrn_backward(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct kernel_lrn lrn = cuda_lrn(plan, step->node);

    return device_lrn_backward(&lrn, plan->model->type, cuda_at(plan, step->other),
                               cuda_at(plan, step->in), cuda_at(plan, step->out),
                               plan->model->runtime.stream);
}

/* in: gradient of the whole; out: of the part at part_offset. */
static int run_split(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct device_pixels pixels = cuda_pixels(plan, step->node);
    const struct device_part part = {.type = pixels.type,
                                     .pixels = pixels.count,
                                     .channels = step->part_channels,
                                     .from_channels = pixels.channels,
                                     .from_offset = step->part_offset,
                                     .to_channels = step->part_channels};

    return device_copy_part(&part, cuda_at(plan, step->in), cuda_at(plan, step->out),
                            plan->model->runtime.stream);
}

/* Work of others joins the stream, and the graph that is made of it. */
static int run_ready(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct backend_config *site = &model->site;
    const bool last = step->ready_floats == model->graph->parameter_floats;
    int code = 0;

    if (!site->enqueue)
        return 0;
    if (last)
        code = device_stamp(&model->report->gradients_ns, model->runtime.stream);
    if (code == 0)
        code = site->enqueue(site->enqueue_context, step->ready_floats);
    if (last && code == 0)
        code = device_stamp(&model->report->exchanged_ns, model->runtime.stream);
    return code;
}

/* ---- gradients of tensors ---- */

static void leave(struct cuda_plan *plan, uint32_t node, uint32_t gradient)
{
    struct cuda_node *own = &plan->nodes[node];

    if (own->needs_gradient && !plan->code)
        own->gradients[own->gradient_count++] = gradient;
}

/* Adds up until at most `most` are left. */
static void add_up(struct cuda_plan *plan, uint32_t node, uint32_t most)
{
    struct cuda_node *own = &plan->nodes[node];

    while (own->gradient_count > most && !plan->code) {
        struct cuda_step step = cuda_step_of(cuda_run_sum, node);
        step.in = own->gradients[own->gradient_count - 2];
        step.other = own->gradients[own->gradient_count - 1];
        step.out = cuda_add_tensor(plan, node);
        cuda_add_step(plan, &step);
        own->gradients[--own->gradient_count - 1] = step.out;
    }
}

static uint32_t whole_gradient(struct cuda_plan *plan, uint32_t node)
{
    add_up(plan, node, 1);
    return plan->nodes[node].gradients[0];
}

/* Of a node that computes the ReLU behind it: the gradient before the ReLU. */
static uint32_t gradient_before_relu(struct cuda_plan *plan, uint32_t node)
{
    struct cuda_step step = cuda_step_of(run_relu_backward, node);

    step.in = whole_gradient(plan, node);
    if (plan->nodes[node].relu == CUDA_NONE)
        return step.in;
    step.mask = plan->nodes[node].value;
    step.out = cuda_add_tensor(plan, node);
    cuda_add_step(plan, &step);
    return step.out;
}

static uint32_t input_of(const struct cuda_plan *plan, uint32_t node)
{
    return plan->model->graph->nodes[node].inputs[0];
}

/* ---- building ---- */

/* The convolution's gradient of its input goes on into the BN before, or into both of a sum. */
static void go_into_norm(struct cuda_plan *plan, struct cuda_step *step)
{
    const struct cuda_node *own = &plan->nodes[step->node];
    const uint32_t end = own->end_before;

    step->norm = own->norm_before;
    step->extra = plan->nodes[input_of(plan, step->norm)].value;
    if (step->shape.fusion & DNN_SUMMED) {
        step->norm_other = plan->nodes[end].norm_other;
        step->mask = plan->nodes[cuda_beside(plan, end)].value;
    }
    plan->nodes[end].dz = step->out;
}

static void add_data(struct cuda_plan *plan, const struct cuda_step *weight)
{
    const uint32_t input = input_of(plan, weight->node);
    struct cuda_step step = cuda_step_of(run_data, weight->node);

    if (!plan->nodes[input].needs_gradient)
        return;
    step.shape = weight->shape;
    step.shape.kind = DNN_DATA;
    step.shape.fusion = plan->nodes[weight->node].fusion[DNN_DATA];
    step.in = weight->other;
    step.out = cuda_add_tensor(plan, input);
    if (step.shape.fusion & DNN_ADDED) {
        step.other = whole_gradient(plan, input);
        plan->nodes[input].gradient_count = 0;
    }
    if (step.shape.fusion & DNN_NORM)
        go_into_norm(plan, &step);
    else
        leave(plan, input, step.out);
    cuda_find_dnn(plan, &step);
    cuda_add_step(plan, &step);
}

static void add_convolution(struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_model *model = plan->model;
    const struct graph_node *row = &model->graph->nodes[node];
    const struct graph_shape *in = &model->graph->nodes[row->inputs[0]].shape;
    struct cuda_step step = cuda_step_of(run_weight, node);

    step.other = gradient_before_relu(plan, node);
    if (row->bias != CUDA_NONE) {
        struct cuda_step bias = cuda_step_of(run_bias_gradient, node);
        bias.in = step.other;
        cuda_add_step(plan, &bias);
    }
    step.in = plan->nodes[row->inputs[0]].value;
    step.shape = cuda_shape(plan, node, DNN_WEIGHT);
    step.shape.fusion = plan->nodes[node].fusion[DNN_WEIGHT];
    if (step.shape.fusion & DNN_PROLOGUE) {
        step.norm = plan->nodes[node].norm_before;
        step.in = plan->nodes[input_of(plan, step.norm)].value;
    }
    const struct kernel_window *window = &step.shape.window;
    const uint64_t numbers = (uint64_t)window->out_channels * window->height * window->width *
                             (window->in_channels / window->groups);
    const bool at_home = model->compute[row->weight] ==
                         model->parameters + model->graph->parameters[row->weight].offset;
    step.out = at_home ? cuda_add_fixed(plan, cuda_gradient(model, row->weight))
                       : cuda_add_buffer(plan, numbers * device_type_bytes(model->type));
    cuda_find_dnn(plan, &step);
    cuda_add_step(plan, &step);
    if (!at_home) {
        struct cuda_step home = cuda_step_of(run_home, node);
        home.in = step.out;
        /* Groups and padding never come together. */
        home.part_channels = in->channels;
        cuda_add_step(plan, &home);
    }
    add_data(plan, &step);
}

/* From dz of a BN's output to the gradient of its input. */
static void add_apply(struct cuda_plan *plan, uint32_t norm, uint32_t dz)
{
    const uint32_t input = input_of(plan, norm);
    struct cuda_step step = cuda_step_of(run_norm_apply, norm);

    if (!plan->nodes[input].needs_gradient)
        return;
    step.norm = norm;
    step.in = plan->nodes[input].value;
    step.other = dz;
    step.out = cuda_add_tensor(plan, input);
    cuda_add_step(plan, &step);
    leave(plan, input, step.out);
}

/* The gradients of `node`, which ends what a BN begins, come back through ReLU to BN. Returns
 * dz. */
static uint32_t add_norm_backward(struct cuda_plan *plan, uint32_t norm, uint32_t node)
{
    const struct cuda_node *own = &plan->nodes[node];
    struct cuda_step step = cuda_step_of(run_norm_backward, node);

    step.norm = norm;
    if (own->dz != CUDA_NONE) {
        step.run = run_norm_parameters;
        cuda_add_step(plan, &step);
        return own->dz;
    }
    add_up(plan, node, 2);
    step.in = plan->nodes[input_of(plan, norm)].value;
    step.other = own->gradients[0];
    if (own->gradient_count > 1)
        step.extra = own->gradients[1];
    step.relu = plan->nodes[norm].unstored;
    if (own->relu != CUDA_NONE && !step.relu)
        step.mask = own->value;
    const bool same = step.extra == CUDA_NONE && own->relu == CUDA_NONE;
    if (!same)
        step.out = cuda_add_tensor(plan, node);
    cuda_add_step(plan, &step);
    return same ? step.other : step.out;
}

static void add_stem(struct cuda_plan *plan, uint32_t norm)
{
    const uint32_t pool = plan->nodes[norm].pool;
    struct cuda_step step = cuda_step_of(run_stem_backward, pool);

    add_up(plan, pool, 2);
    step.norm = norm;
    step.in = plan->nodes[input_of(plan, norm)].value;
    step.other = plan->nodes[pool].gradients[0];
    if (plan->nodes[pool].gradient_count > 1)
        step.extra = plan->nodes[pool].gradients[1];
    step.mask = plan->nodes[pool].which;
    step.out = cuda_add_tensor(plan, norm);
    cuda_add_step(plan, &step);
    add_apply(plan, norm, step.out);
}

static void add_norm(struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_node *own = &plan->nodes[node];

    if (own->pool != CUDA_NONE)
        add_stem(plan, node);
    else if (!own->absorbed)
        add_apply(plan, node, add_norm_backward(plan, node, node));
}

static void add_sum(struct cuda_plan *plan, uint32_t node)
{
    const struct graph_node *row = &plan->model->graph->nodes[node];
    const struct cuda_node *own = &plan->nodes[node];
    uint32_t dz;

    if (own->norm == CUDA_NONE) {
        dz = gradient_before_relu(plan, node);
        leave(plan, row->inputs[0], dz);
        leave(plan, row->inputs[1], dz);
        return;
    }
    dz = add_norm_backward(plan, own->norm, node);
    add_apply(plan, own->norm, dz);
    if (own->norm_other == CUDA_NONE) {
        leave(plan, cuda_beside(plan, node), dz);
        return;
    }
    struct cuda_step step = cuda_step_of(run_norm_parameters, node);
    step.norm = own->norm_other;
    if (own->dz == CUDA_NONE) { /* no convolution has left that one's sums */
        step.run = run_norm_backward;
        step.in = plan->nodes[input_of(plan, own->norm_other)].value;
        step.other = dz;
    }
    cuda_add_step(plan, &step);
    add_apply(plan, own->norm_other, dz);
}

/* Nodes with one input, whose backward pass is one step. */
static void add_plain(struct cuda_plan *plan, uint32_t node,
                      int (*run)(const struct cuda_plan *, const struct cuda_step *))
{
    const uint32_t input = input_of(plan, node);
    struct cuda_step step = cuda_step_of(run, node);

    step.in = whole_gradient(plan, node);
    if (run == run_relu_backward)
        step.mask = plan->nodes[node].value;
    if (run == run_pool_backward)
        step.mask = plan->nodes[node].which;
    if (run == run_lrn_backward)
        step.other = plan->nodes[input].value;
    step.out = cuda_add_tensor(plan, input);
    cuda_add_step(plan, &step);
    leave(plan, input, step.out);
}

static void add_split(struct cuda_plan *plan, uint32_t node)
{
    const struct graph_node *row = &plan->model->graph->nodes[node];
    const uint32_t whole = whole_gradient(plan, node);
    uint32_t offset = 0;

    for (uint32_t i = 0; i < row->input_count; i++) {
        struct cuda_step step = cuda_step_of(run_split, node);
        step.part_offset = offset;
        step.part_channels = cuda_channels(plan->model, row->inputs[i]);
        offset += step.part_channels;
        if (!plan->nodes[row->inputs[i]].needs_gradient)
            continue;
        step.in = whole;
        step.out = cuda_add_tensor(plan, row->inputs[i]);
        cuda_add_step(plan, &step);
        leave(plan, row->inputs[i], step.out);
    }
}

static void add_node(struct cuda_plan *plan, uint32_t node)
{
    switch (plan->model->graph->nodes[node].kind) {
    case GRAPH_INPUT:
        return;
    case GRAPH_CONVOLUTION:
    case GRAPH_FULLY_CONNECTED:
        return add_convolution(plan, node);
    case GRAPH_BATCH_NORM:
        return add_norm(plan, node);
    case GRAPH_RELU:
        return add_plain(plan, node, run_relu_backward);
    case GRAPH_MAX_POOL:
    case GRAPH_AVERAGE_POOL:
        return add_plain(plan, node, run_pool_backward);
    case GRAPH_ADD:
        return add_sum(plan, node);
    case GRAPH_CONCAT:
        return add_split(plan, node);
    case GRAPH_LRN:
        return add_plain(plan, node, run_lrn_backward);
    case GRAPH_DROPOUT:
        return add_plain(plan, node, cuda_run_dropout);
    }
}

/* A ReLU that its producer computes hands its gradients on. */
static bool hand_on(struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_node *own = &plan->nodes[node];
    const enum graph_kind kind = plan->model->graph->nodes[node].kind;

    if (!own->absorbed || kind == GRAPH_BATCH_NORM)
        return false;
    for (uint32_t i = 0; i < own->gradient_count && kind == GRAPH_RELU; i++)
        leave(plan, input_of(plan, node), own->gradients[i]);
    return true; /* a max-pool's stay for its stem */
}

/* The parameters of a node have rising numbers and so falling offsets: with its first one, all of
 * this node and of the nodes behind it are final. */
static void add_ready(struct cuda_plan *plan, uint32_t node)
{
    const struct graph *graph = plan->model->graph;
    const struct graph_node *row = &graph->nodes[node];
    const uint32_t first = row->weight != CUDA_NONE ? row->weight : row->gamma;
    struct cuda_step step = cuda_step_of(run_ready, node);

    if (first == CUDA_NONE)
        return;
    step.ready_floats = graph->parameters[first].offset + graph->parameters[first].count;
    cuda_add_step(plan, &step);
}

void cuda_build_backward(struct cuda_plan *plan)
{
    const uint32_t last = plan->model->graph->node_count - 1;
    struct cuda_step step = cuda_step_of(run_loss, last);

    step.in = plan->nodes[last].value;
    if (plan->training)
        step.out = cuda_add_tensor(plan, last);
    cuda_add_step(plan, &step);
    if (!plan->training)
        return;
    leave(plan, last, step.out);
    for (uint32_t i = last; i > 0 && !plan->code; i--) {
        if (!plan->nodes[i].needs_gradient)
            continue;
        if (!hand_on(plan, i))
            add_node(plan, i);
        add_ready(plan, i);
    }
}
