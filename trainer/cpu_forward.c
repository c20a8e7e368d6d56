/* SPDX-License-Identifier: Apache-2.0
 * The forward pass of a plan: the steps of each node, in the graph's order. */
#include "trainer/cpu.h"

#include <errno.h>

static dnnl_prop_kind_t forward_kind(const struct cpu_plan *plan)
{
    return plan->training ? dnnl_forward_training : dnnl_forward_inference;
}

static const struct cpu_layout *plain_images(const struct cpu_plan *plan, uint32_t number)
{
    const struct graph_shape *shape = &plan->model->graph->nodes[number].shape;

    return cpu_plain(
        &plan->model->dnnl, 4,
        (const dnnl_dims_t){plan->count, shape->channels, shape->height, shape->width});
}

static const struct cpu_layout *plain_rows(const struct cpu_plan *plan, uint32_t number)
{
    const struct graph_shape *shape = &plan->model->graph->nodes[number].shape;

    return cpu_plain(&plan->model->dnnl, 2,
                     (const dnnl_dims_t){plan->count, (dnnl_dim_t)shape->channels * shape->height *
                                                          shape->width});
}

struct cpu_tensor cpu_images_as_rows(struct cpu_plan *plan, const struct cpu_tensor *images,
                                     uint32_t number)
{
    struct cpu_tensor rows = cpu_convert(plan, images, plain_images(plan, number), number);

    rows.layout = plain_rows(plan, number);
    return rows;
}

struct cpu_tensor cpu_rows_as_images(struct cpu_plan *plan, const struct cpu_tensor *rows,
                                     uint32_t number)
{
    struct cpu_tensor images = cpu_convert(plan, rows, plain_rows(plan, number), number);

    images.layout = plain_images(plan, number);
    return images;
}

static const struct cpu_layout *output_any(const struct cpu_plan *plan, uint32_t number)
{
    return cpu_any(&plan->model->dnnl, plain_images(plan, number));
}

static const struct cpu_layout *vector_of(const struct cpu_plan *plan,
                                          const struct graph_node *node)
{
    return cpu_plain(&plan->model->dnnl, 1, (const dnnl_dims_t){node->shape.channels});
}

/* The output of the node's first input. */
static const struct cpu_tensor *input_of(struct cpu_plan *plan, uint32_t number)
{
    return cpu_floats(plan, plan->model->graph->nodes[number].inputs[0]);
}

struct cpu_window cpu_window(const struct graph_node *node)
{
    const struct graph_window *window = &node->window;

    return (struct cpu_window){
        .strides = {window->stride, window->stride},
        .sides = {window->height, window->width},
        .before = {window->pad_top, window->pad_left},
        .behind = {window->pad_bottom, window->pad_right},
    };
}

struct cpu_operation cpu_lrn(const struct graph_node *node, dnnl_prop_kind_t pass,
                             const struct cpu_layout *layout)
{
    return (struct cpu_operation){.kind = CPU_LRN,
                                  .pass = pass,
                                  .source = layout,
                                  .size = node->window.height,
                                  .alpha = (float)node->lrn_alpha,
                                  .beta = (float)node->lrn_beta,
                                  .k = (float)node->lrn_k};
}

dnnl_alg_kind_t cpu_pool_kind(const struct graph_node *node)
{
    if (node->kind == GRAPH_MAX_POOL)
        return dnnl_pooling_max;
    return node->window.count_padding ? dnnl_pooling_avg_include_padding
                                      : dnnl_pooling_avg_exclude_padding;
}

/* ---- convolution and fully connected ---- */

static dnnl_primitive_desc_t describe_weighted(struct cpu_plan *plan, uint32_t number,
                                               const struct cpu_layout *weight)
{
    struct cpu_dnnl *dnnl = &plan->model->dnnl;
    const struct graph_node *node = &plan->model->graph->nodes[number];
    const struct cpu_node *own = &plan->nodes[number];
    const unsigned behind = (own->relu ? CPU_RELU : 0u) | (own->summand ? CPU_SUM : 0u);
    struct cpu_operation operation = {.kind = CPU_CONVOLUTION,
                                      .pass = forward_kind(plan),
                                      .source = cpu_any(dnnl, own->source.layout),
                                      .weight = weight,
                                      .target = output_any(plan, number),
                                      .window = cpu_window(node)};

    if (node->bias != UINT32_MAX || own->norm)
        operation.bias = vector_of(plan, node);
    if (own->summand)
        operation.target = cpu_floats(plan, own->summand)->layout;
    if (node->kind == GRAPH_FULLY_CONNECTED) {
        operation.kind = CPU_INNER_PRODUCT;
        operation.target = plain_rows(plan, number);
    }
    return cpu_describe(plan, &operation, NULL, behind, number);
}

/* With the weights in the layout that oneDNN likes. Where that has gaps in it, nobody else could
 * read them, and each step would copy them to and fro: the canonical layout then. */
static dnnl_primitive_desc_t choose_weighted(struct cpu_plan *plan, uint32_t number)
{
    struct cpu_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[number];
    const struct cpu_layout *plain = model->canonical[node->weight];
    dnnl_primitive_desc_t desc = describe_weighted(plan, number, cpu_any(&model->dnnl, plain));

    if (plan->training && node->kind == GRAPH_FULLY_CONNECTED &&
        cpu_query(plan, desc, dnnl_query_weights_md)->bytes > plain->bytes) {
        dnnl_primitive_desc_destroy(desc);
        desc = describe_weighted(plan, number, plain);
    }
    return desc;
}

/* Weights and bias of a convolution with the BN behind it in them, made when parameters or running
 * statistics have changed. The factor of a channel is easy to find in the canonical layout only. */
static void build_fold(struct cpu_plan *plan, uint32_t number, const struct cpu_layout *wanted,
                       struct cpu_tensor *weight, struct cpu_tensor *bias)
{
    struct cpu_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[number];
    const struct cpu_layout *plain = model->canonical[node->weight];
    const uint32_t before = plan->step_count;

    const struct cpu_tensor home =
        cpu_foreign(plan, model->home[node->weight],
                    model->parameters + model->graph->parameters[node->weight].offset);
    const struct cpu_tensor source = cpu_convert(plan, &home, plain, number);
    const struct cpu_tensor folded = cpu_add_tensor(plan, plain);
    *bias = cpu_add_tensor(plan, vector_of(plan, node));
    struct cpu_step *step = cpu_add_step(plan, CPU_FOLD, number, source.buffer, folded.buffer);
    step->other = bias->buffer;
    step->norm = plan->nodes[number].norm;
    *weight = cpu_convert(plan, &folded, wanted, number);
    if (plan->code)
        return;
    plan->buffers[bias->buffer].place = plan->buffers[weight->buffer].place = CPU_KEPT;
    for (uint32_t i = before; i < plan->step_count; i++)
        plan->steps[i].of_parameters = true;
}

static void build_weighted(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];

    if (plan->model->quantised && plan->model->quantised[number].in_int8)
        return cpu_build_int8(plan, number);
    own->source = *input_of(plan, number);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        own->source = cpu_images_as_rows(plan, &own->source, node->inputs[0]);
    dnnl_primitive_desc_t desc = own->forward = choose_weighted(plan, number);
    if (plan->code)
        return;
    const struct cpu_layout *source = cpu_query(plan, desc, dnnl_query_src_md);
    const struct cpu_layout *wanted = cpu_query(plan, desc, dnnl_query_weights_md);
    const struct cpu_layout *target = cpu_query(plan, desc, dnnl_query_dst_md);
    own->source = cpu_convert(plan, &own->source, source, number);
    own->output = own->summand ? *cpu_floats(plan, own->summand) : cpu_add_tensor(plan, target);
    struct cpu_tensor weight = {0}, bias = {0};
    if (own->norm)
        build_fold(plan, number, wanted, &weight, &bias);
    else
        weight = cpu_parameter(plan, node->weight, wanted, number);
    if (!own->norm && node->bias != UINT32_MAX)
        bias = cpu_parameter(plan, node->bias, plan->model->canonical[node->bias], number);
    const struct cpu_argument arguments[] = {{DNNL_ARG_SRC, &own->source},
                                             {DNNL_ARG_WEIGHTS, &weight},
                                             {DNNL_ARG_DST, &own->output},
                                             {DNNL_ARG_BIAS, &bias}};
    bool has_bias = own->norm || node->bias != UINT32_MAX;
    cpu_add_primitive(plan, desc, number, arguments, has_bias ? 4 : 3);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        own->output = cpu_rows_as_images(plan, &own->output, number);
}

/* ---- batch norm ---- */

static void build_norm(struct cpu_plan *plan, uint32_t number)
{
    const struct cpu_model *model = plan->model;
    const struct graph_node *node = &model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    const struct cpu_layout *vector = vector_of(plan, node);
    float *running = model->statistics + node->statistics;

    own->source = *input_of(plan, number);
    const struct cpu_operation operation = {.kind = CPU_NORM,
                                            .pass = forward_kind(plan),
                                            .source = own->source.layout,
                                            .epsilon = (float)node->epsilon,
                                            .flags = CPU_NORM_FLAGS |
                                                     (own->relu ? dnnl_fuse_norm_relu : 0u) |
                                                     (plan->training ? 0u : dnnl_use_global_stats)};
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(plan, &operation, NULL, 0, number);
    if (plan->code)
        return;
    own->output = cpu_add_tensor(plan, own->source.layout);
    own->mean = plan->training ? cpu_add_tensor(plan, vector) : cpu_foreign(plan, vector, running);
    own->variance = plan->training ? cpu_add_tensor(plan, vector)
                                   : cpu_foreign(plan, vector, running + node->shape.channels);
    const struct cpu_tensor gamma = cpu_parameter(plan, node->gamma, vector, number);
    const struct cpu_tensor beta = cpu_parameter(plan, node->beta, vector, number);
    struct cpu_argument arguments[] = {{DNNL_ARG_SRC, &own->source},
                                       {DNNL_ARG_DST, &own->output},
                                       {DNNL_ARG_MEAN, &own->mean},
                                       {DNNL_ARG_VARIANCE, &own->variance},
                                       {DNNL_ARG_SCALE, &gamma},
                                       {DNNL_ARG_SHIFT, &beta},
                                       {DNNL_ARG_WORKSPACE, &own->workspace}};
    bool keeps_mask = plan->training && own->relu;
    if (keeps_mask)
        own->workspace = cpu_add_tensor(plan, cpu_query(plan, desc, dnnl_query_workspace_md));
    cpu_add_primitive(plan, desc, number, arguments, keeps_mask ? 7 : 6);
    if (plan->training)
        cpu_add_step(plan, CPU_STATISTICS, number, own->mean.buffer, own->variance.buffer);
}

/* ---- what has no parameters ---- */

static void build_relu(struct cpu_plan *plan, uint32_t number)
{
    struct cpu_node *own = &plan->nodes[number];

    own->source = *input_of(plan, number);
    own->forward = cpu_describe(plan,
                                &(struct cpu_operation){.kind = CPU_ELTWISE,
                                                        .pass = forward_kind(plan),
                                                        .algorithm = dnnl_eltwise_relu,
                                                        .source = own->source.layout},
                                NULL, 0, number);
    own->output = cpu_add_tensor(plan, own->source.layout);
    cpu_add_primitive(
        plan, own->forward, number,
        (const struct cpu_argument[]){{DNNL_ARG_SRC, &own->source}, {DNNL_ARG_DST, &own->output}},
        2);
}

/* A primitive of one input; what its backward pass will want to know lies in a workspace. */
static void build_windowed(struct cpu_plan *plan, uint32_t number,
                           const struct cpu_operation *operation)
{
    struct cpu_node *own = &plan->nodes[number];

    own->source = *input_of(plan, number);
    dnnl_primitive_desc_t desc = own->forward = cpu_describe(plan, operation, NULL, 0, number);
    if (plan->code)
        return;
    const struct cpu_layout *kept = cpu_query(plan, desc, dnnl_query_workspace_md);
    bool keeps = plan->training && kept->bytes > 0;
    own->output = cpu_add_tensor(plan, cpu_query(plan, desc, dnnl_query_dst_md));
    if (keeps)
        own->workspace = cpu_add_tensor(plan, kept);
    cpu_add_primitive(plan, desc, number,
                      (const struct cpu_argument[]){{DNNL_ARG_SRC, &own->source},
                                                    {DNNL_ARG_DST, &own->output},
                                                    {DNNL_ARG_WORKSPACE, &own->workspace}},
                      keeps ? 3 : 2);
}

static void build_pool(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];

    build_windowed(plan, number,
                   &(struct cpu_operation){.kind = CPU_POOL,
                                           .pass = forward_kind(plan),
                                           .algorithm = cpu_pool_kind(node),
                                           .source = input_of(plan, number)->layout,
                                           .target = output_any(plan, number),
                                           .window = cpu_window(node)});
}

static void build_lrn(struct cpu_plan *plan, uint32_t number)
{
    const struct cpu_operation operation = cpu_lrn(
        &plan->model->graph->nodes[number], forward_kind(plan), input_of(plan, number)->layout);

    build_windowed(plan, number, &operation);
}

static void build_add(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    const struct cpu_tensor *other = cpu_floats(plan, node->inputs[1]);

    own->source = *input_of(plan, number);
    const struct cpu_tensor second = cpu_convert(plan, other, own->source.layout, number);
    own->forward =
        cpu_describe(plan, &(struct cpu_operation){.kind = CPU_ADD, .source = own->source.layout},
                     NULL, own->relu, number);
    own->output = cpu_add_tensor(plan, own->source.layout);
    cpu_add_primitive(plan, own->forward, number,
                      (const struct cpu_argument[]){{DNNL_ARG_SRC_0, &own->source},
                                                    {DNNL_ARG_SRC_1, &second},
                                                    {DNNL_ARG_DST, &own->output}},
                      3);
}

static void build_concat(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    struct cpu_node *own = &plan->nodes[number];
    const struct cpu_layout *sources[GRAPH_INPUTS_MAX];
    struct cpu_argument arguments[GRAPH_INPUTS_MAX + 1];

    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct cpu_tensor *input = cpu_floats(plan, node->inputs[i]);
        sources[i] = input->layout;
        arguments[i] = (struct cpu_argument){DNNL_ARG_MULTIPLE_SRC + (int)i, input};
    }
    if (plan->code)
        return;
    cpu_keep(plan,
             cpu_dnnl_describe_concat(&plan->model->dnnl, output_any(plan, number),
                                      (int)node->input_count, sources, plan->attributes,
                                      &own->forward),
             number);
    own->output = cpu_add_tensor(plan, cpu_query(plan, own->forward, dnnl_query_dst_md));
    arguments[node->input_count] = (struct cpu_argument){DNNL_ARG_DST, &own->output};
    cpu_add_primitive(plan, own->forward, number, arguments, (int)node->input_count + 1);
}

/* Which elements are dropped is told by their place in the canonical order. */
static void build_dropout(struct cpu_plan *plan, uint32_t number)
{
    struct cpu_node *own = &plan->nodes[number];
    const struct cpu_tensor *input = input_of(plan, number);

    if (!plan->training) {
        own->output = *input;
        return;
    }
    const struct cpu_layout *plain = plain_images(plan, number);
    own->source = cpu_convert(plan, input, plain, number);
    own->output = cpu_add_tensor(plan, plain);
    cpu_add_step(plan, CPU_DROPOUT, number, own->source.buffer, own->output.buffer);
}

/* ---- the whole ---- */

static void build_input(struct cpu_plan *plan)
{
    plan->nodes[0].output = cpu_add_tensor(plan, plain_images(plan, 0));
    cpu_add_step(plan, CPU_NORMALISE, 0, UINT32_MAX, plan->nodes[0].output.buffer);
}

/* The loss wants rows of logits, and makes rows of their gradients. */
static void build_loss(struct cpu_plan *plan)
{
    const uint32_t last = plan->model->graph->node_count - 1;
    struct cpu_node *own = &plan->nodes[last];
    const struct cpu_layout *plain = plain_images(plan, last);
    const struct cpu_tensor logits = cpu_convert(plan, cpu_floats(plan, last), plain, last);
    uint32_t target = UINT32_MAX;

    if (plan->training) {
        own->gradients[own->gradient_count] = cpu_add_tensor(plan, plain);
        target = own->gradients[own->gradient_count++].buffer;
    }
    cpu_add_step(plan, CPU_LOSS, last, logits.buffer, target);
}

/* A node that another one computes. Of a sum's inputs the last one does. */
static void build_absorbed(struct cpu_plan *plan, uint32_t number)
{
    const struct graph_node *node = &plan->model->graph->nodes[number];
    uint32_t from = node->inputs[0];

    for (uint32_t i = 1; i < node->input_count; i++)
        from = node->inputs[i] > from ? node->inputs[i] : from;
    plan->nodes[number].output = plan->nodes[from].output;
    plan->nodes[number].floats = plan->nodes[from].floats;
}

/* Where somebody looks on. Blocks of channels are filled up with zeros. */
static void build_observation(struct cpu_plan *plan, uint32_t number)
{
    const struct cpu_tensor *output = &plan->nodes[number].output;

    if (!plan->model->calibration || plan->nodes[number].hidden || output->step > 0 || plan->code)
        return;
    struct cpu_step *step = cpu_add_step(plan, CPU_OBSERVE, number, output->buffer, output->buffer);
    step->floats = output->layout->bytes / sizeof(float);
}

static void build_node(struct cpu_plan *plan, uint32_t i)
{
    switch (plan->model->graph->nodes[i].kind) {
    case GRAPH_CONVOLUTION:
    case GRAPH_FULLY_CONNECTED:
        build_weighted(plan, i);
        break;
    case GRAPH_BATCH_NORM:
        build_norm(plan, i);
        break;
    case GRAPH_RELU:
        build_relu(plan, i);
        break;
    case GRAPH_MAX_POOL:
    case GRAPH_AVERAGE_POOL:
        build_pool(plan, i);
        break;
    case GRAPH_ADD:
        build_add(plan, i);
        break;
    case GRAPH_CONCAT:
        build_concat(plan, i);
        break;
    case GRAPH_LRN:
        build_lrn(plan, i);
        break;
    case GRAPH_DROPOUT:
        build_dropout(plan, i);
        break;
    case GRAPH_INPUT:
        break;
    }
}

void cpu_build_forward(struct cpu_plan *plan)
{
    build_input(plan);
    for (uint32_t i = 1; i < plan->model->graph->node_count && !plan->code; i++) {
        if (plan->nodes[i].absorbed)
            build_absorbed(plan, i);
        else
            build_node(plan, i);
        build_observation(plan, i);
        cpu_hold_as_planned(plan, i);
    }
    if (!plan->code)
        build_loss(plan);
}
